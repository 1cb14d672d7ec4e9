-- The actors, those in the most films first.
with

actors as (

    select * from {{ ref("int_pagila__actor_current") }}

),

film_actors as (

    select * from {{ ref("int_pagila__film_actor_current") }}

),

-- An actor of no film is an actor, too.
final as (

    select
        actors.actor_id,
        actors.first_name,
        actors.last_name,
        count(film_actors.film_id) as film_count
    from actors
    left join film_actors
        on actors.actor_id = film_actors.actor_id
    group by
        actors.actor_id,
        actors.first_name,
        actors.last_name

)

select * from final
order by
    film_count desc,
    actor_id asc
