select case
            when changed_millis between -210866803200000 and 9223372022399999
                then timestamp_millis(changed_millis)
        end as changed_at from bronze.changes
