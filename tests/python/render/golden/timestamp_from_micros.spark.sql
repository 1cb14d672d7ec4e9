select case
            when changed_micros between -210866803200000000 and 9223372022399999999
                then timestamp_micros(changed_micros)
        end as changed_at from bronze.changes
