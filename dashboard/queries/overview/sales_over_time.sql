-- Rental sales of the newest windows
-- All regions; a sale counts in each window that it lies in.
select
    window_start_at,
    sum(sales_amount) as sales_amount,
    sum(order_count) as order_count
from marts.fct_regional_sales_windows
where window_start_at >= :since
group by window_start_at
order by window_start_at
