{{ config(dist="artwork_id", sort="artwork_id") }}

with

artworks as (

    select * from {{ ref("int_museum__artworks_joined") }}

),

final as (

    select
        -- keys
        artwork_id,
        artist_id,

        -- attributes
        artwork_title,
        artist_name,
        nationality,
        date_text,
        medium,
        department,
        classification,
        object_number,

        -- numbers
        height_cm,
        width_cm,
        depth_cm,
        weight_kg,
        duration_seconds,

        -- flags
        is_catalogued,
        has_artist,

        -- times
        acquisition_date,
        valid_from_at
    from artworks

)

select * from final
