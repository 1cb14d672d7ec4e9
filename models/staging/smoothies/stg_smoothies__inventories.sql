with

records as (

    select * from {{ source("smoothies", "inventories") }}

),

final as (

    select
        -- keys
        -- Where a record lies in Kafka.
        cast(
            _kafka_topic_id
            || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        {{ trimmed_text("product_id", 64) }} as product_id,

        -- numbers
        existing_level,
        stock_quantity,
        new_level,

        -- flags
        -- A tombstone is no movement; marts omit it.
        _is_tombstone as is_tombstone,

        -- times
        cast(event_time as timestamp) as moved_at,

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
