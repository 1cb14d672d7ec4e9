-- What members of the club buy against what others buy, and what their discount costs.
with

purchases as (

    select
        quantity,
        total_purchase_amount,
        cast(
            quantity * (purchase_price_amount + coalesce(supplement_price_amount, 0))
            * coalesce(member_discount, 0) as decimal(18, 4)
        ) as discount_amount,
        case when is_member then 'Members' else 'Others' end as customers,
        case when has_supplements then 1 else 0 end as supplement_count
    from {{ ref("fct_purchases_enriched") }}

),

totals as (

    select
        customers,
        count(*) as purchase_count,
        sum(quantity) as quantity,
        sum(total_purchase_amount) as sales_amount,
        sum(discount_amount) as discount_amount,
        sum(supplement_count) as supplement_count
    from purchases
    group by customers

),

all_sales as (

    select sum(sales_amount) as sales_amount
    from totals

),

final as (

    select
        -- keys
        totals.customers,

        -- numbers
        totals.purchase_count,
        totals.quantity,
        cast(totals.sales_amount as decimal(18, 2)) as sales_amount,
        cast(totals.discount_amount as decimal(18, 2)) as discount_amount,
        cast(totals.sales_amount / totals.purchase_count as decimal(18, 2))
            as average_amount,
        cast(
            cast(totals.quantity as decimal(18, 0)) / totals.purchase_count
            as decimal(18, 2)
        ) as average_quantity,
        cast(
            100 * cast(totals.supplement_count as decimal(18, 0))
            / totals.purchase_count as decimal(5, 2)
        ) as supplements_percent,
        cast(
            100 * totals.sales_amount / nullif(all_sales.sales_amount, 0)
            as decimal(5, 2)
        ) as share_percent
    from totals
    cross join all_sales

)

select * from final
order by customers asc
