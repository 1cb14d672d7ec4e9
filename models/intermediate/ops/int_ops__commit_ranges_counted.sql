with

commits as (

    select * from {{ ref("stg_ingest__commits") }}
    -- A stream that is declared no more leaves its commits, and no table to count.
    where bronze_table in (
        {% for stream in ingested_streams() %}
            '{{ stream.table_name }}',
        {% endfor %}
        ''
    )

),

ranges as (

    select
        *,
        end_offset - first_offset as offset_count,
        sum(end_offset - first_offset) over (
            partition by bronze_table, commit_id
        ) as commit_offset_count
    from {{ ref("stg_ingest__commit_offsets") }}

),

final as (

    select
        -- keys
        ranges.bronze_table,
        ranges.commit_id,
        ranges.kafka_partition,

        -- attributes
        commits.kafka_topic,
        commits.kafka_topic_id,
        commits.commit_kind,

        -- numbers
        ranges.first_offset,
        ranges.end_offset,
        ranges.offset_count,
        commits.commit_row_count,
        commits.commit_quarantined_count,
        -- Nobody knows what the offsets of a gap held.
        cast(
            case
                when commits.commit_kind = 'gap' then 0
                else
                    ranges.commit_offset_count
                    - commits.commit_row_count
                    - commits.commit_quarantined_count
            end as bigint
        ) as commit_empty_count,
        commits.commit_value_bytes,

        -- times
        commits.started_at,
        commits.committed_at
    from ranges
    inner join commits
        on
            ranges.bronze_table = commits.bronze_table
            and ranges.commit_id = commits.commit_id

)

select * from final
