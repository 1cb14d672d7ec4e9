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
        city,
        district,
        country,

        -- numbers
        cast(amount as decimal(18, 2)) as sale_amount,

        -- flags
        -- A tombstone carries no sale. Its row stays, because staging keeps what bronze
        -- has; whoever counts sales leaves it out.
        _is_tombstone as is_tombstone,

        -- times
        payment_date as paid_at,

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
