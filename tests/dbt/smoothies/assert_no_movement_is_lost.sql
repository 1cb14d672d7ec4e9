with

records as (

    select * from {{ ref("stg_smoothies__inventories") }}

),

movements as (

    select * from {{ ref("fct_inventory_movements") }}

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
            ref("fct_inventory_movements"), "smoothies.inventories"
        ) }}

)

select
    sent.record_key as sent_record_key,
    movements.record_key as kept_record_key
from sent
full outer join movements
    on sent.record_key = movements.record_key
where
    sent.record_key is null
    or movements.record_key is null
    or sent.product_id <> movements.product_id
