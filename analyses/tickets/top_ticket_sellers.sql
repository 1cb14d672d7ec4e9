-- The thousandth of the sellers who sold for the most.
with

sales as (

    select * from {{ ref("fct_ticket_sales") }}

),

users as (

    select * from {{ ref("dim_ticket_users") }}

),

totals as (

    select
        seller_id,
        sum(tickets_amount) as sales_amount,
        sum(sold_ticket_count) as ticket_count
    from sales
    group by seller_id

),

parted as (

    select
        *,
        ntile(1000) over (order by sales_amount desc, seller_id asc) as part_number
    from totals

),

-- Sales have names as they were at the time; here they are those of now.
final as (

    select
        parted.seller_id,
        users.username,
        users.full_name,
        parted.sales_amount,
        parted.ticket_count
    from parted
    left join users
        on parted.seller_id = users.user_id
    where parted.part_number = 1

)

select * from final
order by
    sales_amount desc,
    seller_id asc
