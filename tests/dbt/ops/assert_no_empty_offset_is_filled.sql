with

commits as (

    select distinct
        bronze_table,
        commit_id,
        commit_empty_count
    from {{ ref("rpt_ingest_commits") }}

),

absent as (

    select
        bronze_table,
        commit_id,
        sum(absent_count) as absent_count
    from {{ ref("rpt_ingest_gaps") }}
    group by bronze_table, commit_id

)

select
    commits.bronze_table,
    commits.commit_id,
    commits.commit_empty_count,
    coalesce(absent.absent_count, 0) as absent_count
from commits
left join absent
    on
        commits.bronze_table = absent.bronze_table
        and commits.commit_id = absent.commit_id
where commits.commit_empty_count > coalesce(absent.absent_count, 0)
