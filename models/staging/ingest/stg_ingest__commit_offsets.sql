with

records as (

    {{ array_rows(
        source("ingest", "ingest_commits"),
        columns=["table_name", "commit_id"],
        array="offsets",
        fields={
            "partition": "kafka_partition",
            "first_offset": "first_offset",
            "end_offset": "end_offset",
        },
    ) }}

),

final as (

    select
        -- keys
        cast(table_name as varchar(256)) as bronze_table,
        commit_id,
        kafka_partition,

        -- numbers
        first_offset,
        end_offset
    from records

)

select * from final
