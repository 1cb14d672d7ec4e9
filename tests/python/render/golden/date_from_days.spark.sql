select date_add(cast('1970-01-01' as date), acquired_day) as acquisition_date from bronze.changes
