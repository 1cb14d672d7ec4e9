-- Tickets
-- Sales of the ticket shop, captured from its databases.
select
    count(*) as stored_count,
    sum(tickets_amount) as amount,
    max(sold_at) as newest_at
from marts.fct_ticket_sales
