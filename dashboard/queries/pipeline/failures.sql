-- What fails
-- Models and tests whose newest run failed or warned.
with

newest as (

    select
        node_id,
        max(started_at) as started_at
    from state.runs
    where run_status not in ('skipped', 'no-op')
    group by node_id

)

select
    runs.node_name,
    runs.node_type,
    runs.run_status,
    runs.row_count,
    runs.message,
    runs.started_at
from state.runs as runs
inner join newest
    on
        runs.node_id = newest.node_id
        and runs.started_at = newest.started_at
where runs.run_status in ('error', 'fail', 'runtime error', 'warn')
order by runs.run_status asc, runs.started_at desc, runs.node_name asc
