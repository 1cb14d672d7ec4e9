select timestamp_millis(changed_millis) as changed_at from bronze.changes
