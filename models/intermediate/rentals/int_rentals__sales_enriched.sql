with

records as (

    select * from {{ ref("stg_pagila__sales") }}

),

regions as (

    select * from {{ ref("sales_regions") }}

),

sales as (

    select * from records
    where not is_tombstone

),

-- Within one partition Kafka's own order decides, whatever the clocks of the producers.
ranked_in_partition as (

    select
        *,
        row_number() over (
            partition by payment_id, _kafka_topic_id, _kafka_partition
            order by _kafka_offset desc
        ) as recency_in_partition
    from sales

),

-- Partitions have no order between them: a sale that moved (another customer, a topic
-- made anew) goes by time, and by position where two times are equal.
ranked as (

    select
        *,
        row_number() over (
            partition by payment_id
            order by
                _kafka_timestamp desc,
                _kafka_topic_id desc,
                _kafka_partition desc,
                _kafka_offset desc
        ) as recency
    from ranked_in_partition
    where recency_in_partition = 1

),

latest as (

    select * from ranked
    where recency = 1

),

-- A country that the region list does not know is still a sale.
assigned as (

    select
        latest.*,
        coalesce(latest.country, 'Unassigned') as country_of_sale,
        coalesce(regions.sales_region, 'Unassigned') as region_of_sale
    from latest
    left join regions
        on latest.country = regions.country

),

final as (

    select
        -- keys
        payment_id,
        customer_id,

        -- attributes
        city,
        district,
        country_of_sale as country,
        region_of_sale as sales_region,

        -- numbers
        sale_amount,

        -- times
        paid_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from assigned

)

select * from final
