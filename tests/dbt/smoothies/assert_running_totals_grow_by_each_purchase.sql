with

running as (

    select
        record_key,
        product_id,
        running_quantity,
        running_sales_amount,
        lag(running_quantity) over (
            partition by product_id
            order by
                purchased_at asc nulls first,
                _kafka_topic_id asc,
                _kafka_partition asc,
                _kafka_offset asc
        ) as earlier_quantity,
        lag(running_sales_amount) over (
            partition by product_id
            order by
                purchased_at asc nulls first,
                _kafka_topic_id asc,
                _kafka_partition asc,
                _kafka_offset asc
        ) as earlier_amount
    from {{ ref("fct_product_running_totals") }}

),

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}

)

select
    running.record_key,
    running.running_quantity,
    running.earlier_quantity,
    purchases.quantity,
    running.running_sales_amount,
    running.earlier_amount,
    purchases.total_purchase_amount
from running
inner join purchases
    on running.record_key = purchases.record_key
where
    running.running_quantity - coalesce(running.earlier_quantity, 0)
    <> purchases.quantity
    or running.running_sales_amount - coalesce(running.earlier_amount, 0)
    <> purchases.total_purchase_amount
