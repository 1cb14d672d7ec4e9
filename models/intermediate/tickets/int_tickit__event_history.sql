{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__event"),
    stream="tickit.event",
    key=["event_id"],
    attributes=["venue_id", "category_id", "date_id", "event_name", "starts_at"],
) }}
