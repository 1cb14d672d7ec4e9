with

records as (

    {{ array_rows(
        source("ingest", "ingest_commits"),
        columns=["table_name", "table_uuid", "commit_id"],
        array="offsets",
        fields={
            "partition": ["kafka_partition", "integer"],
            "first_offset": ["first_offset", "bigint"],
            "end_offset": ["end_offset", "bigint"],
        },
    ) }}

),

final as (

    select
        -- keys
        cast(table_name as varchar(256)) as bronze_table,
        cast(table_uuid as varchar(36)) as table_uuid,
        commit_id,
        kafka_partition,

        -- numbers
        first_offset,
        end_offset
    from records

)

select * from final
