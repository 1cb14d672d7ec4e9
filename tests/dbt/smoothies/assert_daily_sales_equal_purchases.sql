with

expected as (

    select
        product_id,
        purchase_date,
        sum(total_purchase_amount) as sales_amount,
        sum(quantity) as quantity,
        count(*) as purchase_count
    from {{ ref("fct_purchases_enriched") }}
    group by product_id, purchase_date

),

daily_sales as (

    select * from {{ ref("fct_product_daily_sales") }}

)

select
    expected.product_id as expected_product_id,
    daily_sales.product_id,
    expected.purchase_date,
    daily_sales.sales_date
from expected
full outer join daily_sales
    on
        expected.product_id = daily_sales.product_id
        and expected.purchase_date = daily_sales.sales_date
where
    expected.product_id is null
    or daily_sales.product_id is null
    or expected.sales_amount <> daily_sales.sales_amount
    or expected.quantity <> daily_sales.quantity
    or expected.purchase_count <> daily_sales.purchase_count
