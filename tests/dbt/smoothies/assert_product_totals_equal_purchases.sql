with

expected as (

    select
        product_id,
        sum(total_purchase_amount) as sales_amount,
        sum(quantity) as quantity,
        count(*) as purchase_count
    from {{ ref("fct_purchases_enriched") }}
    group by product_id

),

totals as (

    select * from {{ ref("rpt_product_sales") }}

)

select
    expected.product_id as expected_product_id,
    totals.product_id,
    expected.sales_amount as expected_amount,
    totals.sales_amount,
    expected.quantity as expected_quantity,
    totals.quantity,
    expected.purchase_count as expected_count,
    totals.purchase_count
from expected
full outer join totals
    on expected.product_id = totals.product_id
where
    expected.product_id is null
    or totals.product_id is null
    or expected.sales_amount <> totals.sales_amount
    or expected.quantity <> totals.quantity
    or expected.purchase_count <> totals.purchase_count
