{#- On Redshift: some hundred rows, everywhere. -#}
{{ config(dist="all", sort="node_id") }}

with

runs as (

    select * from {{ ref("int_ops__runs_ordered") }}

),

final as (

    select
        -- keys
        node_id,

        -- attributes
        max(node_name) as node_name,
        max(node_type) as node_type,
        max(case when is_newest_run then run_status end) as run_status,
        max(case when is_newest_run then run_message end) as run_message,

        -- numbers
        max(case when is_newest_run then affected_count end) as affected_count,
        count(*) as run_count,
        count(case when run_status in ('error', 'fail', 'runtime error') then 1 end)
            as failed_count,
        {{ average_seconds("run_seconds") }} as average_seconds,

        -- times
        max(case when is_newest_run then run_started_at end) as run_started_at,
        max(case when run_status in ('success', 'pass', 'warn') then run_started_at end)
            as succeeded_at
    from runs
    group by node_id

)

select * from final
