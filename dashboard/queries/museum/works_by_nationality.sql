-- Artworks by nationality of the artist
select
    nationality,
    artwork_count,
    artist_count,
    catalogued_count
from marts.rpt_artworks_by_nationality
order by artwork_count desc, nationality asc
limit 20
