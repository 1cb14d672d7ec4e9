-- Sellers who earned most
select
    seller_username,
    seller_name,
    sum(earnings_amount) as earnings_amount,
    sum(sold_ticket_count) as sold_ticket_count
from marts.fct_ticket_sales
group by seller_id, seller_username, seller_name
order by earnings_amount desc, seller_username asc
limit 10
