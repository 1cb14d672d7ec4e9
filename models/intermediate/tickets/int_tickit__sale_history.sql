{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    partition_by="is_current",
) }}

{{ change_history(
    ref("stg_tickit__sale"),
    stream="tickit.sale",
    key=["ticket_sale_id"],
    attributes=[
        "listing_id",
        "seller_id",
        "buyer_id",
        "event_id",
        "date_id",
        "sold_ticket_count",
        "tickets_amount",
        "commission_amount",
        "sold_at",
    ],
) }}
