-- Running totals of the products
-- What each product had brought by the end of each minute, of longer times each hour.
with

totals as (

    select
        products.product_name,
        totals.running_sales_amount,
        totals.running_quantity,
        case
            when :is_by_hour then date_trunc('hour', totals.purchased_at)
            else date_trunc('minute', totals.purchased_at)
        end as bought_at
    from marts.fct_product_running_totals as totals
    inner join marts.dim_products as products
        on totals.product_id = products.product_id and products.is_current
    where totals.purchased_at >= :since

)

select
    product_name,
    bought_at,
    max(running_sales_amount) as running_sales_amount,
    max(running_quantity) as running_quantity
from totals
group by product_name, bought_at
order by product_name, bought_at
