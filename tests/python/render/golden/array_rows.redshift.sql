select
        whole.table_name,
        whole.commit_id,
        cast(element."partition" as integer) as kafka_partition,
        cast(element."end_offset" as bigint) as end_offset
        from bronze.ingest_commits as whole, whole.offsets as element
