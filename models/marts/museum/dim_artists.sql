{{ config(dist="all", sort="artist_id") }}

with

artists as (

    select * from {{ ref("int_museum__artists_cleaned") }}

),

works as (

    select
        artist_id,
        count(*) as artwork_count
    from {{ ref("int_museum__artworks_joined") }}
    group by artist_id

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
        coalesce(works.artwork_count, 0) as artwork_count,

        -- times
        artists.valid_from_at
    from artists
    left join works
        on artists.artist_id = works.artist_id

)

select * from final
