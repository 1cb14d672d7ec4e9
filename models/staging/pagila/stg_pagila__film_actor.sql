with

changes as (

    {{ captured_changes("pagila", "film_actor") }}

),

final as (

    select
        -- keys
        record_key,
        actor_id,
        film_id,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
