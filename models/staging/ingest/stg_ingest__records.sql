with

records as (

    {% for stream in ingested_streams() if stream.has_table %}
        select
            cast('{{ stream.table_name }}' as varchar(256)) as bronze_table,
            cast({{ stream.event_time or "null" }} as timestamp) as event_at,
            cast(_kafka_topic as varchar(256)) as _kafka_topic,
            cast(_kafka_topic_id as varchar(64)) as _kafka_topic_id,
            _kafka_partition,
            _kafka_offset,
            cast(_kafka_timestamp as timestamp) as _kafka_timestamp,
            cast(_ingested_at as timestamp) as _ingested_at,
            _commit_id
        from {{ source(stream.source_name, stream.name) }}
        union all
    {% endfor %}

    -- Gives the columns their types, and is all there is where no stream has begun.
    select
        cast(null as varchar(256)) as bronze_table,
        cast(null as timestamp) as event_at,
        cast(null as varchar(256)) as _kafka_topic,
        cast(null as varchar(64)) as _kafka_topic_id,
        cast(null as integer) as _kafka_partition,
        cast(null as bigint) as _kafka_offset,
        cast(null as timestamp) as _kafka_timestamp,
        cast(null as timestamp) as _ingested_at,
        cast(null as bigint) as _commit_id
    where 1 = 0

),

final as (

    select
        -- keys
        bronze_table,

        -- times
        event_at,

        -- metadata
        _kafka_topic,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from records

)

select * from final
