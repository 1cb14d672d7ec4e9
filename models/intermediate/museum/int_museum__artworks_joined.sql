with

artworks as (

    select * from {{ ref("int_moma__artworks_current") }}

),

artists as (

    select * from {{ ref("int_museum__artists_cleaned") }}

),

final as (

    select
        -- keys
        artworks.artwork_id,
        artworks.artist_id,

        -- attributes
        {{ normalized_text("artworks.artwork_title", 4096) }} as artwork_title,
        artists.artist_name,
        artists.nationality,
        {{ normalized_text("artworks.date_text", 128) }} as date_text,
        {{ normalized_text("artworks.medium", 4096) }} as medium,
        {{ normalized_text("artworks.department", 128) }} as department,
        {{ normalized_text("artworks.classification", 64) }} as classification,
        {{ normalized_text("artworks.object_number", 64) }} as object_number,

        -- numbers
        artworks.height_cm,
        artworks.width_cm,
        artworks.depth_cm,
        artworks.weight_kg,
        artworks.duration_seconds,

        -- flags
        coalesce(artworks.is_catalogued, false) as is_catalogued,
        artists.artist_id is not null as has_artist,

        -- times
        artworks.acquisition_date,
        artworks.valid_from_at
    from artworks
    -- A work whose artist the museum does not list, or no longer, is still a work.
    left join artists
        on artworks.artist_id = artists.artist_id

)

select * from final
