with

records as (

    {{ array_rows(
        source("ingest", "ingest_commits"),
        columns=["table_name", "commit_id"],
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
        commit_id,
        kafka_partition,

        -- numbers
        first_offset,
        end_offset
    from records

)

select * from final
