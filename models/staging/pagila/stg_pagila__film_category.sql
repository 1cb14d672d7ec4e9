with

changes as (

    {{ captured_changes("pagila", "film_category") }}

),

final as (

    select
        -- keys
        record_key,
        film_id,
        category_id,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
