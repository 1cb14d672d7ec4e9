with

records as (

    select * from {{ ref("stg_smoothies__inventories") }}

),

final as (

    select
        -- keys
        record_key,
        product_id,

        -- numbers
        existing_level,
        stock_quantity,
        new_level,

        -- times
        moved_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from records
    where not is_tombstone

)

select * from final
