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
        product_id,

        -- numbers
        existing_level,
        stock_quantity,
        new_level,

        -- flags
        -- A tombstone moves nothing; whoever counts movements leaves it out.
        _is_tombstone as is_tombstone,

        -- times
        event_time as moved_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from records

)

select * from final
