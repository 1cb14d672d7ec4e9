with

artworks as (

    select * from {{ ref("dim_artworks") }}

),

final as (

    select
        -- keys
        coalesce(nationality, 'Unknown') as nationality,

        -- numbers
        count(*) as artwork_count,
        count(distinct artist_id) as artist_count,
        sum(case when is_catalogued then 1 else 0 end) as catalogued_count,

        -- times
        min(acquisition_date) as first_acquisition_date,
        max(acquisition_date) as last_acquisition_date
    from artworks
    group by coalesce(nationality, 'Unknown')

)

select * from final
