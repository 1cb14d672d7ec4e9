select case
            when changed_millis between -210866803200000 and 9223372022399999
                then dateadd(
        millisecond,
        cast(changed_millis - floor(changed_millis / 86400000.0) * 86400000 as integer),
        dateadd(
            day,
            cast(floor(changed_millis / 86400000.0) as integer),
            cast('1970-01-01 00:00:00' as timestamp)
        )
    )
        end as changed_at from bronze.changes
