-- Events that brought most
select
    event_name,
    category_name,
    sum(tickets_amount) as sales_amount,
    sum(sold_ticket_count) as sold_ticket_count
from marts.fct_ticket_sales
group by event_name, category_name
order by sales_amount desc, event_name asc, category_name asc
limit 10
