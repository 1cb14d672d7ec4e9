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
        ) as recency
    from sales

),

-- Partitions have no order between them: a sale that moved (a new customer, a topic made
-- anew) goes by time, and by position where two times are equal.
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
        ) as recency_of_all
    from ranked_in_partition
    where recency = 1

),

final as (

    select
        -- keys
        ranked.payment_id,
        ranked.customer_id,

        -- attributes
        ranked.city,
        ranked.district,
        coalesce(ranked.country, 'Unassigned') as country,
        coalesce(regions.sales_region, 'Unassigned') as sales_region,

        -- numbers
        ranked.sale_amount,

        -- times
        ranked.paid_at,

        -- metadata
        ranked._kafka_topic_id,
        ranked._kafka_partition,
        ranked._kafka_offset,
        ranked._kafka_timestamp,
        ranked._ingested_at,
        ranked._commit_id
    from ranked
    -- A country that the region list does not know is still a sale.
    left join regions
        on ranked.country = regions.country
    where ranked.recency_of_all = 1

)

select * from final
