with

records as (

    select * from {{ ref("stg_smoothies__purchases") }}

),

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}

),

sent as (

    select
        record_key,
        product_id
    from records
    where
        not is_tombstone
        -- Ingest may have gone on since the fact was built.
        and coalesce(_commit_id, 0) <= {{ recorded_read_point(
            ref("fct_purchases_enriched"), "smoothies.purchases"
        ) }}

)

select
    sent.record_key as sent_record_key,
    purchases.record_key as kept_record_key
from sent
full outer join purchases
    on sent.record_key = purchases.record_key
where
    sent.record_key is null
    or purchases.record_key is null
    or sent.product_id <> purchases.product_id
