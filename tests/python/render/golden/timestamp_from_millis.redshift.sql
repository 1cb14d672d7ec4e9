select dateadd(
        millisecond,
        cast(changed_millis - floor(changed_millis / 86400000.0) * 86400000 as integer),
        dateadd(
            day,
            cast(floor(changed_millis / 86400000.0) as integer),
            cast('1970-01-01 00:00:00' as timestamp)
        )
    ) as changed_at from bronze.changes
