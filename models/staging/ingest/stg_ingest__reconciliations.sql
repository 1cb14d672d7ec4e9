with

records as (

    select * from {{ source("ingest", "ingest_reconciliations") }}

),

final as (

    select
        -- keys
        cast(stream as varchar(256)) as stream_name,

        -- attributes
        cast(table_name as varchar(256)) as bronze_table,
        cast(database_name as varchar(256)) as database_name,
        cast(source_table as varchar(256)) as source_table,

        -- numbers
        row_count as source_row_count,

        -- times
        cast(reconciled_at as timestamp) as reconciled_at,

        -- metadata
        cast(
            {{ position_across_restarts_of_streams(
                "stream", "source_position", "reconciled_at"
            ) }} as varchar(160)
        ) as log_position
    from records

)

select * from final
