-- All tickets of a sale cost the same: their number times the price of one is what was
-- paid, but for half a cent of each, which rounding may take.
select
    ticket_sale_id,
    sold_ticket_count,
    ticket_amount,
    tickets_amount
from {{ ref("fct_ticket_sales") }}
where
    ticket_amount is null
    or abs(sold_ticket_count * ticket_amount - tickets_amount)
    > sold_ticket_count * 0.005
