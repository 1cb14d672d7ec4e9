select case
            when substring(changed_at, 1, 1) between '0' and '9'
                then cast(changed_at as timestamp)
        end as changed_at from bronze.changes
