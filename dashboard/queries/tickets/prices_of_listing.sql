-- Prices of the listing
select
    valid_from_at,
    ticket_amount,
    ticket_count,
    is_deleted
from intermediate.int_tickit__listing_history
where listing_id = :listing_id
order by valid_from_at, version_key
