-- When each model was built last
select
    node_name,
    max(started_at) as built_at,
    avg(run_seconds) as average_seconds,
    count(*) as build_count
from state.runs
where
    node_type in ('model', 'seed', 'snapshot')
    and run_status = 'success'
group by node_id, node_name
order by max(started_at), node_name
