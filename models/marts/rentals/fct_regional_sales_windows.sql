{#- On Redshift: few regions would fill few slices; rewritten by day. -#}
{{ config(
    materialized="incremental",
    partition_by="days(window_start_at)",
    dist="even",
    sort="window_start_at",
) }}

{% set window = sales_window() %}
{% set increment = begin_increment(time_column="window_start_at", settings=window) %}
-- The windows of a sale may begin the day before.
{% do touch_days_of(
    increment,
    ref("fct_rental_sales"),
    days_before=window.days_before,
    has_same_days=window.time_column == "paid_at",
) %}

with

sales as (

    select * from {{ ref("fct_rental_sales") }}
    where {{ in_touched_days(increment, "paid_at", days_after=window.days_before) }}

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
    where {{ in_touched_days(increment, "window_start_at") }}
    group by sales_region, window_start_at, window_end_at

)

select * from final
