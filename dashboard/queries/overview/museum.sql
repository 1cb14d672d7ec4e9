-- Museum
-- Artworks that the museum has now, captured from its database.
select
    cast(null as double) as amount,
    count(*) as stored_count,
    max(valid_from_at) as newest_at
from marts.dim_artworks
