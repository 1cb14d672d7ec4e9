select timestamp_micros(changed_micros) as changed_at from bronze.changes
