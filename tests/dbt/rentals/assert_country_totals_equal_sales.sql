with

totals as (

    select
        coalesce(sum(sales_amount), 0) as sales_amount,
        coalesce(sum(order_count), 0) as order_count
    from {{ ref("rpt_country_sales") }}

),

sales as (

    select
        coalesce(sum(sale_amount), 0) as sales_amount,
        count(*) as order_count
    from {{ ref("fct_rental_sales") }}

)

select
    totals.sales_amount as total_amount,
    sales.sales_amount,
    totals.order_count as total_count,
    sales.order_count
from totals
cross join sales
where
    totals.sales_amount <> sales.sales_amount
    or totals.order_count <> sales.order_count
