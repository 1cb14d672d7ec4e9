{#- On Redshift: a few rows, on every node. -#}
{{ config(dist="all", sort="sales_region") }}

with

sales as (

    select * from {{ ref("fct_rental_sales") }}

),

final as (

    select
        -- keys
        sales_region,

        -- numbers
        cast(sum(sale_amount) as decimal(18, 2)) as sales_amount,
        count(*) as order_count
    from sales
    group by sales_region

)

select * from final
