-- Sales of each region by window
-- By the time of payment, UTC. Late sales count in the windows that they belong to.
select
    sales_region,
    window_start_at,
    sales_amount,
    order_count
from marts.fct_regional_sales_windows
where window_start_at >= :since
order by sales_region, window_start_at
