select case
            when changed_micros between -210866803200000000 and 9223372022399999999
                then dateadd(
        microsecond,
        cast(changed_micros - floor(changed_micros / 1000000.0) * 1000000 as integer),
        dateadd(second, cast(floor(changed_micros / 1000000.0) as bigint), cast('1970-01-01 00:00:00' as timestamp))
    )
        end as changed_at from bronze.changes
