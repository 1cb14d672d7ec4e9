{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_tickit__sale"), stream="tickit.sale", key=["ticket_sale_id"]
) }}
