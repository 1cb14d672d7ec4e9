select case
            when acquired_day between -2440588 and 106751990
                then cast(dateadd(day, acquired_day, cast('1970-01-01 00:00:00' as timestamp)) as date)
        end as acquisition_date from bronze.changes
