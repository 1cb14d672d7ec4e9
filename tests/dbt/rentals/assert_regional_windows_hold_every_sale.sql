{% set window = sales_window() %}
{% set length = window.length_minutes * 60 %}
{% set slide = window.slide_minutes * 60 %}

with

timed as (

    select
        sales_region,
        sale_amount,
        {{ epoch_seconds(window.time_column) }} as event_second
    from {{ ref("fct_rental_sales") }}

),

-- How many windows a sale lies in, counted otherwise than the macro does: the starts up
-- to its second, less those whose window had ended by then.
counted as (

    select
        sales_region,
        sale_amount,
        cast(
            floor(event_second / cast({{ slide }} as decimal(18, 0)))
            - floor((event_second - {{ length }}) / cast({{ slide }} as decimal(18, 0)))
            as integer
        ) as window_count
    from timed

),

expected as (

    select
        sales_region,
        sum(sale_amount * window_count) as sales_amount,
        sum(window_count) as order_count
    from counted
    group by sales_region

),

actual as (

    select
        sales_region,
        sum(sales_amount) as sales_amount,
        sum(order_count) as order_count
    from {{ ref("fct_regional_sales_windows") }}
    group by sales_region

)

select
    expected.sales_region as expected_sales_region,
    actual.sales_region as actual_sales_region,
    expected.sales_amount as expected_amount,
    actual.sales_amount as actual_amount,
    expected.order_count as expected_count,
    actual.order_count as actual_count
from expected
full outer join actual
    on expected.sales_region = actual.sales_region
where
    expected.sales_region is null
    or actual.sales_region is null
    or expected.sales_amount <> actual.sales_amount
    or expected.order_count <> actual.order_count
