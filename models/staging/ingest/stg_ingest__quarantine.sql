with

-- Column by column: key, value and headers are bytes, which belong in no report.
records as (

    select
        _kafka_topic,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _schema_id,
        stage,
        error_class,
        error_message,
        _ingested_at,
        replayed_at,
        discarded_at,
        discard_reason,
        octet_length(_kafka_value) as value_bytes
    from {{ source("ingest", "quarantine") }}

),

final as (

    select
        -- attributes
        cast(stage as varchar(32)) as stage,
        cast(error_class as varchar(64)) as error_class,
        cast(substring(error_message, 1, 1000) as varchar(4000)) as error_message,
        cast(substring(discard_reason, 1, 1000) as varchar(4000)) as discard_reason,

        -- numbers
        cast(value_bytes as bigint) as value_bytes,

        -- times
        cast(replayed_at as timestamp) as replayed_at,
        cast(discarded_at as timestamp) as discarded_at,

        -- metadata
        cast(_kafka_topic as varchar(256)) as _kafka_topic,
        cast(_kafka_topic_id as varchar(64)) as _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        cast(_kafka_timestamp as timestamp) as _kafka_timestamp,
        _schema_id,
        cast(_ingested_at as timestamp) as _ingested_at
    from records

)

select * from final
