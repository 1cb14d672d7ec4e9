with

records as (

    select * from {{ ref("stg_ingest__quarantine") }}

),

sorted_records as (

    select
        *,
        cast(
            case
                when replayed_at is not null then 'replayed'
                when discarded_at is not null then 'discarded'
                else 'open'
            end as varchar(16)
        ) as quarantine_state
    from records

),

final as (

    select
        -- attributes
        _kafka_topic as kafka_topic,
        -- Of captured tables alone.
        {{ stream_of_topic("_kafka_topic") }} as stream_name,
        stage,
        error_class,
        error_message,
        quarantine_state,

        -- numbers
        value_bytes,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _ingested_at
    from sorted_records

)

select * from final
