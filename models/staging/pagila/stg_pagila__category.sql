with

changes as (

    {{ captured_changes("pagila", "category") }}

),

final as (

    select
        -- keys
        record_key,
        category_id,

        -- attributes
        {{ trimmed_text("name", 128) }} as category_name,

        -- times
        cast(last_update as timestamp) as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
