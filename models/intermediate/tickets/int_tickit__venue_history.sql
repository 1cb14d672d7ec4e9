{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__venue"),
    stream="tickit.venue",
    key=["venue_id"],
    attributes=["venue_name", "venue_city", "venue_state", "seat_count"],
) }}
