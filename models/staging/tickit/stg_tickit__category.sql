with

changes as (

    {{ captured_changes("tickit", "category") }}

),

final as (

    select
        -- keys
        record_key,
        catid as category_id,

        -- attributes
        {{ trimmed_text("catgroup", 64) }} as category_group,
        {{ trimmed_text("catname", 64) }} as category_name,
        {{ trimmed_text("catdesc", 256) }} as category_description,

        {{ columns_of_change() }}
    from changes

)

select * from final
