with

sales as (

    select * from {{ ref("int_rentals__sales_enriched") }}

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

        -- times
        paid_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from sales

)

select * from final
