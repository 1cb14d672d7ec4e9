-- Newest builds
-- Each command of dbt that ran nodes, with what failed.
select
    command,
    min(started_at) as started_at,
    count(*) as node_count,
    count_if(run_status in ('error', 'fail', 'runtime error')) as failed_count,
    count_if(run_status = 'warn') as warned_count,
    count_if(run_status in ('skipped', 'no-op')) as skipped_count,
    sum(run_seconds) as node_seconds
from state.runs
group by invocation_id, command
order by started_at desc
limit 20
