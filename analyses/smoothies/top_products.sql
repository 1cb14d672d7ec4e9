-- Which products sell most, what they leave after their cost, and what part of all
-- sales is theirs.
with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}

),

sales as (

    select * from {{ ref("rpt_product_sales") }}

),

all_sales as (

    select sum(sales_amount) as sales_amount
    from sales

),

-- A product that changed its name goes by the last; one that the catalogue never listed
-- has neither name nor known cost.
described as (

    select
        product_id,
        product_category,
        product_name,
        row_number() over (
            partition by product_id
            order by valid_from_at desc
        ) as recency
    from {{ ref("dim_products") }}

),

costs as (

    select
        product_id,
        cast(sum(quantity * product_cogs_amount) as decimal(18, 2)) as cogs_amount,
        min(case when is_known_product then 1 else 0 end) as known_lines
    from purchases
    group by product_id

),

final as (

    select
        -- keys
        sales.product_id,

        -- attributes
        described.product_category,
        described.product_name,

        -- numbers
        sales.sales_amount,
        sales.quantity,
        sales.purchase_count,
        cast(
            case
                when costs.known_lines = 1 then sales.sales_amount - costs.cogs_amount
            end as decimal(18, 2)
        ) as margin_amount,
        cast(
            100 * sales.sales_amount / nullif(all_sales.sales_amount, 0)
            as decimal(5, 2)
        ) as share_percent
    from sales
    cross join all_sales
    inner join costs
        on sales.product_id = costs.product_id
    left join described
        on
            sales.product_id = described.product_id
            and described.recency = 1

)

select * from final
order by
    sales_amount desc,
    product_id asc
