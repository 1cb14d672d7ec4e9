-- The artist as the museum knew them then
select
    artist_name,
    nationality,
    gender,
    birth_year,
    death_year,
    valid_from_at,
    valid_to_at
from intermediate.int_moma__artists_history
where
    artist_id = :artist_id
    and valid_from_at <= :instant
    and (valid_to_at is null or valid_to_at > :instant)
    and not is_deleted
