with

records as (

    select * from {{ ref("stg_ingest__records") }}

),

final as (

    select
        -- keys
        bronze_table,

        -- numbers
        {{ seconds_between("event_at", "_kafka_timestamp") }}
            as event_to_kafka_seconds,
        {{ seconds_between("_kafka_timestamp", "_ingested_at") }}
            as kafka_to_ingest_seconds,
        {{ seconds_between("event_at", "_ingested_at") }}
            as event_to_ingest_seconds,

        -- times
        date_trunc('hour', _kafka_timestamp) as hour_start_at
    from records

)

select * from final
