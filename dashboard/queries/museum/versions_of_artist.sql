-- All versions of the entry
select
    valid_from_at,
    valid_to_at,
    artist_name,
    nationality,
    birth_year,
    death_year,
    is_deleted
from intermediate.int_moma__artists_history
where artist_id = :artist_id
order by valid_from_at, version_key
