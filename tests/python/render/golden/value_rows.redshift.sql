select
        cast('2026-01-01' as date) as day,
        1 as rank
    union all
    select
        cast(null as date) as day,
        2 as rank
