{#- A table: the log is copied before any bronze table is read, so that nothing that
    is ingested meanwhile is missed there. On Redshift: grows with every commit. -#}
{{ config(materialized="table", dist="even", sort="committed_at") }}

with

-- The table that stands there is the one that was named last.
tables as (

    select
        bronze_table,
        table_uuid,
        row_number() over (
            partition by bronze_table
            order by committed_at desc, table_uuid desc
        ) as place
    from {{ ref("stg_ingest__commits") }}
    where commit_kind = 'table'

),

commits as (

    select commits.*
    from {{ ref("stg_ingest__commits") }} as commits
    left join tables
        on
            commits.bronze_table = tables.bronze_table
            and tables.place = 1
    -- A log that names no table is of one that was never recreated, as far as it knows.
    where (tables.table_uuid is null or commits.table_uuid = tables.table_uuid)
    -- A stream that is declared no more leaves its commits, and no table to count.
    and commits.bronze_table in (
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
            partition by bronze_table, table_uuid, commit_id
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
        -- The content of the offsets of a gap is unknown.
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
            and coalesce(ranges.table_uuid, '') = coalesce(commits.table_uuid, '')

)

select * from final
