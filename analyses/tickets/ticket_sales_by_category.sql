-- What each category brought, those with the largest sales first.
with

categories as (

    select * from {{ ref("rpt_ticket_sales_by_category") }}

),

final as (

    select
        category_id,
        category_group,
        category_name,
        cast(
            round(sales_amount / nullif(sold_ticket_count, 0), 2) as decimal(18, 2)
        ) as average_ticket_amount,
        sale_count,
        sold_ticket_count as ticket_count,
        sales_amount,
        commission_amount,
        earnings_amount
    from categories

)

select * from final
order by
    sales_amount desc,
    category_id asc
