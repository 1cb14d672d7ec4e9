-- Windows with late sales
-- Sales that reached Kafka when their window had ended.
with

windows as (

    select distinct
        window_start_at,
        window_end_at
    from marts.fct_regional_sales_windows
    where window_start_at >= :since

)

select
    windows.window_start_at,
    windows.window_end_at,
    count(*) as order_count,
    count_if(sales._kafka_timestamp >= windows.window_end_at) as late_count
from windows
inner join marts.fct_rental_sales as sales
    on
        windows.window_start_at <= sales.paid_at
        and windows.window_end_at > sales.paid_at
group by windows.window_start_at, windows.window_end_at
order by windows.window_start_at desc
