-- Rentals
-- Sales of films, each payment once.
select
    count(*) as stored_count,
    sum(sale_amount) as amount,
    max(paid_at) as newest_at
from marts.fct_rental_sales
