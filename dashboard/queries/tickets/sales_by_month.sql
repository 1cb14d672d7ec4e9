-- Sales of each month
select
    month_start_date,
    sales_amount,
    commission_amount,
    sold_ticket_count,
    sale_count
from marts.rpt_ticket_sales_by_month
order by month_start_date
