with

-- Column by column: the offsets are nested, and have a model of their own.
records as (

    select
        table_name,
        commit_id,
        kafka_topic,
        kafka_topic_id,
        row_count,
        quarantined_count,
        value_bytes,
        started_at,
        committed_at,
        kind,
        table_uuid
    from {{ source("ingest", "ingest_commits") }}

),

final as (

    select
        -- keys
        cast(table_name as varchar(256)) as bronze_table,
        cast(table_uuid as varchar(36)) as table_uuid,
        commit_id,

        -- attributes
        cast(kafka_topic as varchar(256)) as kafka_topic,
        cast(kafka_topic_id as varchar(64)) as kafka_topic_id,
        -- Commits older than the column are of streams.
        cast(coalesce(kind, 'stream') as varchar(16)) as commit_kind,

        -- numbers
        row_count as commit_row_count,
        quarantined_count as commit_quarantined_count,
        value_bytes as commit_value_bytes,

        -- times
        cast(started_at as timestamp) as started_at,
        cast(committed_at as timestamp) as committed_at
    from records

)

select * from final
