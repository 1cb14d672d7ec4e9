{% set window = sales_window() %}
{% set length = window.length_minutes * 60 %}
{% set slide = window.slide_minutes * 60 %}

with

timed as (

    select
        product_id,
        total_purchase_amount,
        quantity,
        {{ epoch_seconds("purchased_at") }} as event_second
    from {{ ref("fct_purchases_enriched") }}

),

-- How many windows a purchase lies in, counted otherwise than the macro does: the
-- starts up to its second, less those whose window had ended by then.
counted as (

    select
        product_id,
        total_purchase_amount,
        quantity,
        cast(
            floor(event_second / cast({{ slide }} as decimal(18, 0)))
            - floor((event_second - {{ length }}) / cast({{ slide }} as decimal(18, 0)))
            as integer
        ) as window_count
    from timed

),

expected as (

    select
        product_id,
        sum(total_purchase_amount * window_count) as sales_amount,
        sum(quantity * window_count) as quantity,
        sum(window_count) as purchase_count
    from counted
    group by product_id

),

actual as (

    select
        product_id,
        sum(sales_amount) as sales_amount,
        sum(quantity) as quantity,
        sum(purchase_count) as purchase_count
    from {{ ref("fct_product_sales_windows") }}
    group by product_id

)

select
    expected.product_id as expected_product_id,
    actual.product_id as actual_product_id,
    expected.sales_amount as expected_amount,
    actual.sales_amount as actual_amount,
    expected.quantity as expected_quantity,
    actual.quantity as actual_quantity,
    expected.purchase_count as expected_count,
    actual.purchase_count as actual_count
from expected
full outer join actual
    on expected.product_id = actual.product_id
where
    expected.product_id is null
    or actual.product_id is null
    or expected.sales_amount <> actual.sales_amount
    or expected.quantity <> actual.quantity
    or expected.purchase_count <> actual.purchase_count
