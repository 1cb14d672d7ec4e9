select /*+ coalesce(1) */ *
    from (select * from values
        (cast('2026-01-01' as date), 1)
    as literals (day, rank)) as written
