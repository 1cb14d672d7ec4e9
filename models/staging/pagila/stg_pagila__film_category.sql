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
        cast(last_update as timestamp) as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
