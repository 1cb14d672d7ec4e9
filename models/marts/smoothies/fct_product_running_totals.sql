{#- On Redshift: beside the purchase that it counts; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(purchased_at)",
    dist="record_key",
    sort="purchased_at",
) }}

{% set increment = begin_increment(time_column="purchased_at") %}
-- A late purchase changes the totals after it: an affected day affects all days after
-- it.
{% do add_affected_days_of(
    increment, ref("fct_purchases_enriched"), is_onwards=true
) %}
{% do assert_in_step(
    increment, ref("fct_product_daily_sales"), ref("fct_purchases_enriched")
) %}

with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}
    where {{ in_affected_days(increment, "purchased_at") }}

),

-- What each product had sold before the first day that is recomputed.
openings as (

    select
        product_id,
        sum(purchase_count) as purchase_count,
        sum(quantity) as quantity,
        sum(sales_amount) as sales_amount
    from {{ ref("fct_product_daily_sales") }}
    where {{ before_affected_days(increment, "sales_date") }}
    group by product_id

),

running as (

    select
        *,
        count(*) over (
            partition by product_id
            order by
                purchased_at asc nulls first,
                _kafka_topic_id asc,
                _kafka_partition asc,
                _kafka_offset asc,
                _commit_id asc
            rows between unbounded preceding and current row
        ) as purchases_so_far,
        sum(quantity) over (
            partition by product_id
            order by
                purchased_at asc nulls first,
                _kafka_topic_id asc,
                _kafka_partition asc,
                _kafka_offset asc,
                _commit_id asc
            rows between unbounded preceding and current row
        ) as quantity_so_far,
        sum(total_purchase_amount) over (
            partition by product_id
            order by
                purchased_at asc nulls first,
                _kafka_topic_id asc,
                _kafka_partition asc,
                _kafka_offset asc,
                _commit_id asc
            rows between unbounded preceding and current row
        ) as sales_so_far
    from purchases

),

final as (

    select
        -- keys
        running.record_key,
        running.transaction_id,
        running.product_id,

        -- numbers
        cast(
            coalesce(openings.purchase_count, 0) + running.purchases_so_far as bigint
        ) as running_purchase_count,
        cast(
            coalesce(openings.quantity, 0) + running.quantity_so_far as bigint
        ) as running_quantity,
        cast(
            coalesce(openings.sales_amount, 0) + running.sales_so_far as decimal(18, 2)
        ) as running_sales_amount,

        -- times
        running.purchased_at,

        -- metadata
        running._kafka_topic_id,
        running._kafka_partition,
        running._kafka_offset,
        running._kafka_timestamp,
        running._ingested_at,
        running._commit_id
    from running
    left join openings
        on running.product_id = openings.product_id

)

select * from final
