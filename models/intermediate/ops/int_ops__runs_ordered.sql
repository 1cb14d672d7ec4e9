with

runs as (

    select * from {{ ref("stg_dbt__runs") }}

),

-- A skipped node keeps its earlier result.
numbered as (

    select
        *,
        row_number() over (
            partition by node_id, case when run_status = 'skipped' then 1 else 0 end
            order by run_started_at desc, invocation_id desc
        ) as newest_first
    from runs

),

flagged as (

    select
        *,
        newest_first = 1 and run_status <> 'skipped' as is_newest_run
    from numbered

),

final as (

    select
        -- keys
        invocation_id,
        node_id,

        -- attributes
        command,
        node_name,
        node_type,
        run_status,
        run_message,

        -- numbers
        affected_count,
        run_seconds,

        -- flags
        is_newest_run,

        -- times
        run_started_at
    from flagged

)

select * from final
