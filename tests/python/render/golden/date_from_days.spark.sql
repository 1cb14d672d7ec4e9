select case
            when acquired_day between -2440588 and 106751990
                then date_add(cast('1970-01-01' as date), acquired_day)
        end as acquisition_date from bronze.changes
