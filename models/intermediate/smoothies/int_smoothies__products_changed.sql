with

records as (

    select * from {{ ref("stg_smoothies__products") }}

),

identified as (

    select
        *,
        coalesce(product_id, keyed_product_id) as changed_product_id,
        -- A tombstone has no time of the shop; Kafka's is the nearest.
        coalesce(listed_at, _kafka_timestamp) as changed_at
    from records

),

final as (

    select
        -- keys
        record_key,
        changed_product_id as product_id,

        -- attributes
        product_category,
        product_name,
        product_size,

        -- numbers
        product_cogs_amount,
        product_price_amount,
        inventory_level,
        propensity_to_buy,

        -- flags
        has_fruit,
        has_veggies,
        has_nuts,
        has_caffeine,
        is_tombstone as is_withdrawn,

        -- times
        changed_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from identified
    -- A record that names no product, by value or key, changes none.
    where changed_product_id is not null

)

select * from final
