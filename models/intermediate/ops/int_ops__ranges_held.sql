{#- A table: all of bronze is read once, for two reports. On Redshift: a few rows for
    each commit. -#}
{{ config(materialized="table", dist="even", sort="bronze_table") }}

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

positions as (

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

copies as (

    select
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        kafka_offset,
        is_quarantined,
        commit_id,
        count(*) as copy_count
    from positions
    group by
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        kafka_offset,
        is_quarantined,
        commit_id

),

-- Offsets that follow each other are as far from their places in the order.
numbered as (

    select
        *,
        kafka_offset - row_number() over (
            partition by
                bronze_table,
                kafka_topic,
                kafka_topic_id,
                kafka_partition,
                is_quarantined,
                commit_id,
                copy_count
            order by kafka_offset
        ) as range_number
    from copies

),

ranges as (

    select
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        is_quarantined,
        commit_id,
        copy_count,
        min(kafka_offset) as first_offset,
        max(kafka_offset) + 1 as end_offset
    from numbered
    group by
        bronze_table,
        kafka_topic,
        kafka_topic_id,
        kafka_partition,
        is_quarantined,
        commit_id,
        copy_count,
        range_number

),

final as (

    select
        -- keys
        bronze_table,
        kafka_topic_id,
        kafka_partition,
        commit_id,

        -- attributes
        kafka_topic,

        -- numbers
        first_offset,
        end_offset,
        copy_count,

        -- flags
        is_quarantined
    from ranges

)

select * from final
