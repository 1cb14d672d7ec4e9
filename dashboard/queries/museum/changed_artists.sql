-- Artists whose entry changed most
select
    artist_id,
    max(artist_name) as artist_name,
    count(*) as version_count,
    min(valid_from_at) as first_at,
    max(valid_from_at) as last_at
from intermediate.int_moma__artists_history
group by artist_id
order by count(*) desc, artist_id asc
limit 100
