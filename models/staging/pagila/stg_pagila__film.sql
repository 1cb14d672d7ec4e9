with

changes as (

    {{ captured_changes("pagila", "film") }}

),

final as (

    select
        -- keys
        record_key,
        film_id,
        language_id,
        original_language_id,

        -- attributes
        {{ trimmed_text("title", 1024) }} as film_title,
        {{ trimmed_text("description", 65535) }} as film_description,
        {{ trimmed_text("rating", 16) }} as film_rating,
        {{ trimmed_text("special_features", 1024) }} as special_features,
        {{ trimmed_text("fulltext", 65535) }} as film_words,

        -- numbers
        release_year,
        rental_duration as rental_days,
        cast(rental_rate as decimal(18, 2)) as rental_amount,
        length as film_minutes,
        cast(replacement_cost as decimal(18, 2)) as replacement_amount,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
