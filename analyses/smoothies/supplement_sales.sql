-- How often supplements are asked for, by kind of product, and what they bring.
with

purchases as (

    select
        total_purchase_amount,
        coalesce(product_category, 'Unknown') as product_category,
        case when has_supplements then 1 else 0 end as supplement_count,
        case
            when has_supplements
                then cast(
                    quantity * coalesce(supplement_price_amount, 0)
                    * (1 - coalesce(member_discount, 0)) as decimal(18, 4)
                )
            else cast(0 as decimal(18, 4))
        end as supplement_amount
    from {{ ref("fct_purchases_enriched") }}

),

totals as (

    select
        product_category,
        count(*) as purchase_count,
        sum(supplement_count) as supplement_count,
        sum(supplement_amount) as supplement_amount,
        sum(total_purchase_amount) as sales_amount
    from purchases
    group by product_category

),

final as (

    select
        -- keys
        product_category,

        -- numbers
        purchase_count,
        supplement_count,
        cast(supplement_amount as decimal(18, 2)) as supplement_amount,
        cast(
            100 * cast(supplement_count as decimal(18, 0)) / purchase_count
            as decimal(5, 2)
        ) as purchases_percent,
        cast(100 * supplement_amount / nullif(sales_amount, 0) as decimal(5, 2))
            as sales_percent
    from totals

)

select * from final
order by
    purchases_percent desc,
    product_category asc
