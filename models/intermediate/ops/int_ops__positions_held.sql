with

records as (

    select * from {{ ref("stg_ingest__records") }}

),

quarantine as (

    select * from {{ ref("stg_ingest__quarantine") }}
    -- One that was replayed is in bronze now.
    where replayed_at is null

),

-- Quarantine knows topics, and the commit log to which table each belongs.
topics as (

    select distinct
        bronze_table,
        kafka_topic,
        kafka_topic_id
    from {{ ref("int_ops__commit_ranges_counted") }}

),

both_places as (

    select
        bronze_table,
        _kafka_topic as kafka_topic,
        _kafka_topic_id as kafka_topic_id,
        _kafka_partition as kafka_partition,
        _kafka_offset as kafka_offset,
        false as is_quarantined,
        _commit_id as commit_id
    from records

    union all

    select
        topics.bronze_table,
        topics.kafka_topic,
        topics.kafka_topic_id,
        quarantine._kafka_partition as kafka_partition,
        quarantine._kafka_offset as kafka_offset,
        true as is_quarantined,
        cast(null as bigint) as commit_id
    from quarantine
    inner join topics
        on
            quarantine._kafka_topic = topics.kafka_topic
            and quarantine._kafka_topic_id = topics.kafka_topic_id

),

final as (

    select
        -- keys
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        kafka_offset,

        -- attributes
        kafka_topic,

        -- flags
        is_quarantined,

        -- metadata
        commit_id
    from both_places

)

select * from final
