{#- On Redshift: sales are found by id, so spread by it; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(paid_at)",
    dist="payment_id",
    sort="paid_at",
) }}

{% set increment = begin_increment(time_column="paid_at") %}

with

-- A sale that was sent again may have moved: the day it lay in is rewritten as well.
records as (

    {{ new_and_existing_rows(
        increment,
        rows=ref("int_rentals__sales_enriched"),
        stream="pagila.sales",
        key="payment_id",
    ) }}

),

ranked_in_partition as (

    select
        *,
        row_number() over (
            partition by payment_id, _kafka_topic_id, _kafka_partition
            order by {{ latest_in_partition() }}
        ) as recency_in_partition
    from records

),

-- A sale that moved (another customer, a recreated topic) is in several partitions.
ranked as (

    select
        *,
        row_number() over (
            partition by payment_id
            order by {{ latest_of_partitions() }}
        ) as recency,
        max(was_moved) over (partition by payment_id) as was_moved_before,
        count(*) over (partition by payment_id) as partition_count
    from ranked_in_partition
    where recency_in_partition = 1

),

latest as (

    select
        *,
        partition_count > 1 or was_moved_before = 1 as has_moved
    from ranked
    where recency = 1

),

final as (

    select
        -- keys
        payment_id,
        customer_id,

        -- attributes
        city,
        district,
        country,
        sales_region,

        -- numbers
        sale_amount,

        -- flags
        has_moved,

        -- times
        paid_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from latest

)

select * from final
