-- What each category brought, those with the largest sales first.
with

sales as (

    select * from {{ ref("fct_ticket_sales") }}

),

final as (

    select
        category_group,
        category_name,
        cast(
            round(sum(tickets_amount) / nullif(sum(sold_ticket_count), 0), 2)
            as decimal(18, 2)
        ) as average_ticket_amount,
        count(*) as sale_count,
        sum(sold_ticket_count) as ticket_count,
        sum(tickets_amount) as sales_amount,
        sum(commission_amount) as commission_amount,
        sum(earnings_amount) as earnings_amount
    from sales
    group by category_group, category_name

)

select * from final
order by
    sales_amount desc,
    category_group asc,
    category_name asc
