-- Sales of each category by window
select
    products.product_category,
    windows.window_start_at,
    sum(windows.sales_amount) as sales_amount,
    sum(windows.quantity) as quantity
from marts.fct_product_sales_windows as windows
inner join marts.dim_products as products
    on windows.product_id = products.product_id and products.is_current
where windows.window_start_at >= :since
group by products.product_category, windows.window_start_at
order by products.product_category, windows.window_start_at
