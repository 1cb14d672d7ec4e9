-- Sales of each category
select
    category_group,
    category_name,
    sales_amount,
    commission_amount,
    sold_ticket_count,
    sale_count
from marts.rpt_ticket_sales_by_category
order by sales_amount desc, category_name asc
