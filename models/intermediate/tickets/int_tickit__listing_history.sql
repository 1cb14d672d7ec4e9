{{ config(materialized="incremental", partition_by="is_current") }}

{{ change_history(
    ref("stg_tickit__listing"), stream="tickit.listing", key=["listing_id"]
) }}
