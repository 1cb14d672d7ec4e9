with

source as (

    select * from {{ source("dbt", "runs") }}

),

renamed as (

    select
        -- keys
        invocation_id,
        node_id,

        -- attributes
        command,
        node_name,
        node_type,
        run_status,
        message as run_message,

        -- numbers
        row_count as affected_count,
        run_seconds,

        -- times
        started_at as run_started_at
    from source

)

select * from renamed
