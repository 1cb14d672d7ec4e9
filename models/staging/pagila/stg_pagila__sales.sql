with

records as (

    select * from {{ source("pagila", "sales") }}

),

final as (

    select
        -- keys
        -- Where a record lies in Kafka: a sale that was sent twice has two.
        cast(
            _kafka_topic_id
            || '-' || cast(_kafka_partition as varchar(11))
            || '-' || cast(_kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        payment_id,
        customer_id,

        -- attributes
        {{ trimmed_text("city", 256) }} as city,
        {{ trimmed_text("district", 256) }} as district,
        {{ trimmed_text("country", 256) }} as country,

        -- numbers
        cast(amount as decimal(18, 2)) as sale_amount,

        -- flags
        -- A tombstone carries no sale. Its row stays, because staging keeps what
        -- bronze has; marts omit it.
        _is_tombstone as is_tombstone,

        -- times
        cast(payment_date as timestamp) as paid_at,

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
