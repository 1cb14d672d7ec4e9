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
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
