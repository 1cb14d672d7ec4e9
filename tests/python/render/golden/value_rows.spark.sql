select * from values
        (cast('2026-01-01' as date), 1),
        (cast(null as date), 2)
    as literals (day, rank)
