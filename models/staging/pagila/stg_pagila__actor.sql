with

changes as (

    {{ captured_changes("pagila", "actor") }}

),

final as (

    select
        -- keys
        record_key,
        actor_id,

        -- attributes
        {{ trimmed_text("first_name", 256) }} as first_name,
        {{ trimmed_text("last_name", 256) }} as last_name,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
