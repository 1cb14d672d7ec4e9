with

records as (

    select * from {{ source("smoothies", "purchases") }}

),

final as (

    select
        -- keys
        -- Where a record lies in Kafka: the only name that a line has, because a
        -- transaction may buy one product twice.
        cast(
            _kafka_topic_id
            || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        {{ trimmed_text("transaction_id", 64) }} as transaction_id,
        {{ trimmed_text("product_id", 64) }} as product_id,

        -- numbers
        cast(price as decimal(18, 2)) as purchase_price_amount,
        quantity,
        cast(member_discount as decimal(4, 2)) as member_discount,
        cast(supplement_price as decimal(18, 2)) as supplement_price_amount,
        cast(total_purchase as decimal(18, 2)) as total_purchase_amount,

        -- flags
        is_member,
        add_supplements as has_supplements,
        -- A tombstone carries no line. Its row stays, because staging keeps what bronze
        -- has; marts omit it.
        _is_tombstone as is_tombstone,

        -- times
        cast(transaction_time as timestamp) as purchased_at,

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
