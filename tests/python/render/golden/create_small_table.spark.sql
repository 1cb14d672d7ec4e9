create table if not exists state.touched_days (
        model_name varchar(256),
        touched_date date
    )
    using iceberg
    partitioned by (model_name)
    tblproperties (
        'write.distribution-mode' = 'none',
        'write.metadata.delete-after-commit.enabled' = 'true',
        'write.metadata.previous-versions-max' = '5'
    )
