{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__listing"),
    stream="tickit.listing",
    key=["listing_id"],
    attributes=[
        "seller_id",
        "event_id",
        "date_id",
        "ticket_count",
        "ticket_amount",
        "listing_amount",
        "offered_at",
    ],
) }}
