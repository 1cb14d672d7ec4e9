{#- Shared by all marts of sales by window. Late-arriving sales always count: a window is never
    closed. The windows of a sale may begin on an earlier day. -#}
{% macro sales_by_window(sales, by) -%}
    {%- set window = sales_window() -%}
    {%- set increment = begin_increment(time_column="window_start_at", settings=window) -%}
    {%- do add_affected_days_of(
        increment,
        sales,
        days_before=window.days_before,
        has_same_days=window.time_column == "paid_at",
    ) -%}
with

sales as (

    select * from {{ sales }}
    where {{ in_affected_days(increment, "paid_at", days_after=window.days_before) }}

),

sales_in_windows as (

    {{ sliding_windows(
        "sales",
        time_column=window.time_column,
        columns=[by, "sale_amount"],
        length_minutes=window.length_minutes,
        slide_minutes=window.slide_minutes,
    ) }}

),

final as (

    select
        -- keys
        {{ by }},
        window_start_at,

        -- attributes
        window_end_at,

        -- numbers
        cast(sum(sale_amount) as decimal(18, 2)) as sales_amount,
        count(*) as order_count
    from sales_in_windows
    where {{ in_affected_days(increment, "window_start_at") }}
    group by {{ by }}, window_start_at, window_end_at

)

select * from final
{%- endmacro %}
