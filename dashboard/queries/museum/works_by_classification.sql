-- Artworks by classification
select
    classification,
    artwork_count,
    artist_count,
    catalogued_count
from marts.rpt_artworks_by_classification
order by artwork_count desc, classification asc
limit 20
