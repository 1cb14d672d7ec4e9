with

artists as (

    select * from {{ ref("int_moma__artists_current") }}

),

final as (

    select
        -- keys
        artist_id,

        -- attributes
        {{ normalized_text("artist_name", 256) }} as artist_name,
        {{ normalized_text("nationality", 64) }} as nationality,
        {{ normalized_text("gender", 32) }} as gender,

        -- numbers
        -- The museum writes 0 where it does not know.
        nullif(birth_year, 0) as birth_year,
        nullif(death_year, 0) as death_year,

        -- times
        valid_from_at
    from artists

)

select * from final
