{{ config(dist="all", sort="artist_id") }}

with

artists as (

    select * from {{ ref("int_museum__artists_cleaned") }}

),

artworks as (

    select * from {{ ref("int_museum__artworks_joined") }}

),

counted as (

    select
        artists.artist_id,
        count(artworks.artwork_id) as artwork_count
    from artists
    left join artworks
        on artists.artist_id = artworks.artist_id
    group by artists.artist_id

),

final as (

    select
        -- keys
        artists.artist_id,

        -- attributes
        artists.artist_name,
        artists.nationality,
        artists.gender,

        -- numbers
        artists.birth_year,
        artists.death_year,
        counted.artwork_count,

        -- times
        artists.valid_from_at
    from artists
    inner join counted
        on artists.artist_id = counted.artist_id

)

select * from final
