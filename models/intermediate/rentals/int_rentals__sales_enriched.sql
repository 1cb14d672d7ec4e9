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

-- A country that the region list does not know is still a sale.
assigned as (

    select
        sales.*,
        cast(coalesce(sales.country, 'Unassigned') as varchar(256)) as country_of_sale,
        cast(coalesce(regions.sales_region, 'Unassigned') as varchar(32))
            as region_of_sale
    from sales
    left join regions
        on sales.country = regions.country

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
