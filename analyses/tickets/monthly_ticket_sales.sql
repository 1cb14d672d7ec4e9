-- What each month brought: sales, tickets, what a ticket cost on average, commissions.
with

sales as (

    select
        sold_ticket_count,
        tickets_amount,
        commission_amount,
        earnings_amount,
        cast(extract(year from sold_at) as integer) as year_number,
        cast(extract(quarter from sold_at) as integer) as quarter_number,
        cast(extract(month from sold_at) as integer) as month_number
    from {{ ref("fct_ticket_sales") }}

),

final as (

    select
        year_number,
        quarter_number,
        month_number,
        cast(
            round(sum(tickets_amount) / nullif(sum(sold_ticket_count), 0), 2)
            as decimal(18, 2)
        ) as average_ticket_amount,
        sum(tickets_amount) as sales_amount,
        sum(sold_ticket_count) as ticket_count,
        sum(commission_amount) as commission_amount,
        sum(earnings_amount) as earnings_amount
    from sales
    group by year_number, quarter_number, month_number

)

select * from final
order by year_number, month_number
