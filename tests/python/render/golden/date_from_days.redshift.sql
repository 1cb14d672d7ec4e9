select cast(dateadd(day, acquired_day, cast('1970-01-01 00:00:00' as timestamp)) as date) as acquisition_date from bronze.changes
