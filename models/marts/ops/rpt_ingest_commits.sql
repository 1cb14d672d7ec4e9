{#- On Redshift: grows with every commit; asked for by time. -#}
{{ config(dist="even", sort="committed_at") }}

with

ranges as (

    select * from {{ ref("int_ops__commit_ranges_counted") }}

),

final as (

    select
        -- keys
        bronze_table,
        commit_id,
        kafka_partition,

        -- attributes
        kafka_topic,
        kafka_topic_id,
        commit_kind,

        -- numbers
        first_offset,
        end_offset,
        offset_count,
        commit_row_count,
        commit_quarantined_count,
        commit_empty_count,
        commit_value_bytes,

        -- times
        started_at,
        committed_at
    from ranges

)

select * from final
