-- How much ingest does in a day, and how fast it is while it works: what to look at
-- before it is given more streams, or fewer machines.
with

-- A commit has a row for each partition, and its own numbers in each of them.
commits as (

    select distinct
        bronze_table,
        commit_id,
        commit_row_count + commit_quarantined_count as record_count,
        commit_value_bytes as value_bytes,
        committed_at,
        {{ seconds_between("started_at", "committed_at") }} as busy_seconds
    from {{ ref("rpt_ingest_commits") }}

),

-- What a crash kept out of the log has no start and no bytes: it counts, and its speed
-- is not known.
days as (

    select
        bronze_table,
        cast(committed_at as date) as commit_date,
        count(*) as commit_count,
        sum(record_count) as record_count,
        sum(value_bytes) as value_bytes,
        sum(busy_seconds) as busy_seconds,
        sum(case when busy_seconds is not null then record_count end)
            as timed_record_count
    from commits
    group by bronze_table, cast(committed_at as date)

),

final as (

    select
        -- keys
        bronze_table,
        commit_date,

        -- numbers
        commit_count,
        record_count,
        cast(value_bytes / 1000000.0 as decimal(18, 3)) as value_megabytes,
        cast(busy_seconds as decimal(18, 3)) as busy_seconds,
        cast(timed_record_count / nullif(busy_seconds, 0) as decimal(18, 1))
            as records_per_busy_second
    from days

)

select * from final
order by
    commit_date desc,
    bronze_table asc
