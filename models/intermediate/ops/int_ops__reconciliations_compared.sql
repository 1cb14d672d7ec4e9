{#- Read once, whatever the number of counts: the rows at a position are those that
    came, less those that went, up to there. -#}
with

reconciliations as (

    select * from {{ ref("stg_ingest__reconciliations") }}

),

moves as (

    select * from {{ ref("int_ops__captured_rows_moved") }}

),

commits as (

    select * from {{ ref("stg_ingest__commits") }}

),

counted_tables as (

    select distinct
        stream_name,
        bronze_table
    from reconciliations

),

-- By database: ingest was at work at that time, or somebody asked again.
signs as (

    select
        {{ database_of_stream("stream_name") }} as captured_from,
        reconciled_at as seen_at
    from reconciliations
    union all
    select
        {{ database_of_stream("counted_tables.stream_name") }} as captured_from,
        commits.committed_at as seen_at
    from commits
    inner join counted_tables
        on commits.bronze_table = counted_tables.bronze_table

),

last_signs as (

    select
        captured_from,
        max(seen_at) as seen_at
    from signs
    group by captured_from

),

first_places as (

    select
        stream_name,
        min(case when row_change <> 0 then log_position end) as first_position
    from moves
    group by stream_name

),

-- What moves at a place comes before the count there.
places as (

    select
        stream_name,
        log_position,
        row_change,
        0 as is_count,
        cast(null as timestamp) as reconciled_at
    from moves
    union all
    select
        stream_name,
        log_position,
        0 as row_change,
        1 as is_count,
        reconciled_at
    from reconciliations

),

added as (

    select
        stream_name,
        reconciled_at,
        is_count,
        sum(row_change) over (
            partition by stream_name
            order by log_position, is_count, reconciled_at
            rows between unbounded preceding and current row
        ) as held_row_count
    from places

),

final as (

    select
        -- keys
        reconciliations.stream_name,

        -- attributes
        reconciliations.bronze_table,
        reconciliations.database_name,
        reconciliations.source_table,

        -- numbers
        reconciliations.source_row_count,
        cast(
            case
                when first_places.stream_name is not null then added.held_row_count
            end as bigint
        ) as held_row_count,
        {{ seconds_between("reconciliations.reconciled_at", "last_signs.seen_at") }}
            as seen_after_seconds,

        -- flags
        coalesce(
            reconciliations.log_position < first_places.first_position, false
        ) as is_before_capture,

        -- times
        reconciliations.reconciled_at,

        -- metadata
        reconciliations.log_position
    from reconciliations
    inner join added
        on
            reconciliations.stream_name = added.stream_name
            and reconciliations.reconciled_at = added.reconciled_at
            and added.is_count = 1
    inner join last_signs
        on
            {{ database_of_stream("reconciliations.stream_name") }}
            = last_signs.captured_from
    left join first_places
        on reconciliations.stream_name = first_places.stream_name

)

select * from final
