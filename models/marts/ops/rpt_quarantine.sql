{#- On Redshift: a row for each kind of error, on every node. -#}
{{ config(dist="all", sort="kafka_topic") }}

with

records as (

    select * from {{ ref("int_ops__quarantined_records_sorted") }}

),

-- The sample is the newest record that needs attention, or else the newest.
ranked as (

    select
        *,
        row_number() over (
            partition by kafka_topic, stage, error_class
            order by
                case when quarantine_state = 'open' then 0 else 1 end asc,
                _ingested_at desc,
                _kafka_topic_id desc,
                _kafka_partition desc,
                _kafka_offset desc
        ) as place
    from records

),

summed as (

    select
        kafka_topic,
        stage,
        error_class,
        max(case when place = 1 then _kafka_topic_id end) as sample_topic_id,
        max(case when place = 1 then _kafka_partition end) as sample_partition,
        max(case when place = 1 then _kafka_offset end) as sample_offset,
        max(case when place = 1 then error_message end) as sample_message,
        count(*) as record_count,
        count(case when quarantine_state = 'open' then 1 end) as open_count,
        count(case when quarantine_state = 'replayed' then 1 end) as replayed_count,
        count(case when quarantine_state = 'discarded' then 1 end) as discarded_count,
        coalesce(sum(value_bytes), 0) as quarantined_bytes,
        min(_ingested_at) as first_seen_at,
        max(_ingested_at) as last_seen_at
    from ranked
    group by kafka_topic, stage, error_class

),

final as (

    select
        -- keys
        kafka_topic,
        stage,
        error_class,

        -- attributes
        sample_topic_id,
        sample_partition,
        sample_offset,
        sample_message,

        -- numbers
        record_count,
        open_count,
        replayed_count,
        discarded_count,
        cast(quarantined_bytes as bigint) as quarantined_bytes,

        -- times
        first_seen_at,
        last_seen_at
    from summed

)

select * from final
