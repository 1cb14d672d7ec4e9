-- Listings whose price changed
select
    listing_id,
    count(distinct ticket_amount) as price_count
from intermediate.int_tickit__listing_history
group by listing_id
having count(distinct ticket_amount) > 1
order by count(distinct ticket_amount) desc, listing_id asc
limit 100
