{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_tickit__date"), stream="tickit.date", key=["date_id"]
) }}
