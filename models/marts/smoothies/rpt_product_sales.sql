{#- On Redshift: a row for each product, on every node. -#}
{{ config(dist="all", sort="product_id") }}

with

-- By day, because that is the same sum over far fewer rows.
daily_sales as (

    select * from {{ ref("fct_product_daily_sales") }}

),

final as (

    select
        -- keys
        product_id,

        -- numbers
        cast(sum(sales_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(quantity) as bigint) as quantity,
        cast(sum(purchase_count) as bigint) as purchase_count
    from daily_sales
    group by product_id

)

select * from final
