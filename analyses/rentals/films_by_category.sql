-- What the rental shop has to offer, by category and language.
with

films as (

    select * from {{ ref("int_pagila__film_current") }}

),

film_categories as (

    select * from {{ ref("int_pagila__film_category_current") }}

),

categories as (

    select * from {{ ref("int_pagila__category_current") }}

),

languages as (

    select * from {{ ref("int_pagila__language_current") }}

),

-- A film of several categories counts in each; one of none counts, too.
final as (

    select
        categories.category_name,
        languages.language_name,
        cast(
            round(
                sum(cast(films.film_minutes as decimal(18, 2)))
                / nullif(count(films.film_minutes), 0),
                2
            ) as decimal(18, 2)
        ) as average_minutes,
        cast(
            round(sum(films.rental_amount) / nullif(count(films.rental_amount), 0), 2)
            as decimal(18, 2)
        ) as average_rental_amount,
        count(*) as film_count
    from films
    left join film_categories
        on films.film_id = film_categories.film_id
    left join categories
        on film_categories.category_id = categories.category_id
    left join languages
        on films.language_id = languages.language_id
    group by
        categories.category_name,
        languages.language_name

)

select * from final
order by
    film_count desc,
    category_name asc nulls last,
    language_name asc nulls last
