{% set window = sales_window() %}

with

sales as (

    select * from {{ ref("fct_rental_sales") }}

),

-- All sales, however late they came: a window is never closed.
sales_in_windows as (

    {{ sliding_windows(
        "sales",
        time_column=window.time_column,
        columns=["sales_region", "sale_amount"],
        length_minutes=window.length_minutes,
        slide_minutes=window.slide_minutes,
    ) }}

),

final as (

    select
        -- keys
        sales_region,
        window_start_at,

        -- attributes
        window_end_at,

        -- numbers
        cast(sum(sale_amount) as decimal(18, 2)) as sales_amount,
        count(*) as order_count
    from sales_in_windows
    group by sales_region, window_start_at, window_end_at

)

select * from final
