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
        cast(last_update as timestamp) as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
