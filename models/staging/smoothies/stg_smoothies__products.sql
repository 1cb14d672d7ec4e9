with

records as (

    select * from {{ source("smoothies", "products") }}

),

final as (

    select
        -- keys
        -- Where a record lies in Kafka: a product that is listed again has two.
        cast(
            _kafka_topic_id
            || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        {{ trimmed_text("product_id", 64) }} as product_id,
        {{ trimmed_text("_key", 64) }} as keyed_product_id,

        -- attributes
        {{ trimmed_text("category", 256) }} as product_category,
        {{ trimmed_text("item", 256) }} as product_name,
        {{ trimmed_text("size", 64) }} as product_size,

        -- numbers
        cast(cogs as decimal(18, 2)) as product_cogs_amount,
        cast(price as decimal(18, 2)) as product_price_amount,
        inventory_level,
        propensity_to_buy,

        -- flags
        contains_fruit as has_fruit,
        contains_veggies as has_veggies,
        contains_nuts as has_nuts,
        contains_caffeine as has_caffeine,
        -- A tombstone removes its product from the catalogue.
        _is_tombstone as is_tombstone,

        -- times
        cast(event_time as timestamp) as listed_at,

        -- metadata
        cast(_kafka_topic_id as varchar(64)) as _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        cast(_kafka_timestamp as timestamp) as _kafka_timestamp,
        cast(_ingested_at as timestamp) as _ingested_at,
        _commit_id
    from records

)

select * from final
