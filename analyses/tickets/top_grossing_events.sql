-- The hundredth of the events that grossed the most.
with

sales as (

    select * from {{ ref("fct_ticket_sales") }}

),

events as (

    select * from {{ ref("dim_events") }}

),

totals as (

    select
        event_id,
        sum(tickets_amount) as sales_amount,
        sum(sold_ticket_count) as ticket_count
    from sales
    group by event_id

),

parted as (

    select
        *,
        ntile(100) over (order by sales_amount desc, event_id asc) as part_number
    from totals

),

-- Sales have names as they were at the time; here they are those of now.
final as (

    select
        parted.event_id,
        events.event_name,
        events.category_name,
        events.venue_name,
        parted.sales_amount,
        parted.ticket_count
    from parted
    left join events
        on parted.event_id = events.event_id
    where parted.part_number = 1

)

select * from final
order by
    sales_amount desc,
    event_id asc
