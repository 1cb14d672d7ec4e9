{#- The history of each table that is captured from a log. They are listed, since dbt
    has to know what a model reads before it knows which models there are. -#}
{% set histories = {
    "moma.artists": ref("int_moma__artists_history"),
    "moma.artworks": ref("int_moma__artworks_history"),
    "pagila.actor": ref("int_pagila__actor_history"),
    "pagila.address": ref("int_pagila__address_history"),
    "pagila.category": ref("int_pagila__category_history"),
    "pagila.film": ref("int_pagila__film_history"),
    "pagila.film_actor": ref("int_pagila__film_actor_history"),
    "pagila.film_category": ref("int_pagila__film_category_history"),
    "pagila.language": ref("int_pagila__language_history"),
    "tickit.category": ref("int_tickit__category_history"),
    "tickit.date": ref("int_tickit__date_history"),
    "tickit.event": ref("int_tickit__event_history"),
    "tickit.listing": ref("int_tickit__listing_history"),
    "tickit.sale": ref("int_tickit__sale_history"),
    "tickit.user": ref("int_tickit__user_history"),
    "tickit.venue": ref("int_tickit__venue_history"),
} %}

with

moves as (

    {% for stream, history in histories.items() %}
        select
            cast('{{ stream }}' as varchar(256)) as stream_name,
            1 as row_change,
            valid_from_position as log_position
        from {{ history }}
        where not is_deleted
        union all
        select
            cast('{{ stream }}' as varchar(256)) as stream_name,
            -1 as row_change,
            valid_to_position as log_position
        from {{ history }}
        where not is_deleted and valid_to_position is not null
        union all
        -- A history without rows is one, too.
        select
            cast('{{ stream }}' as varchar(256)) as stream_name,
            0 as row_change,
            cast('' as varchar(160)) as log_position
        union all
    {% endfor %}

    -- Gives the columns their types; the only part if no table is captured.
    select
        cast(null as varchar(256)) as stream_name,
        cast(null as integer) as row_change,
        cast(null as varchar(160)) as log_position
    where 1 = 0

),

final as (

    select
        -- keys
        stream_name,

        -- numbers
        row_change,

        -- metadata
        log_position
    from moves

)

select * from final
