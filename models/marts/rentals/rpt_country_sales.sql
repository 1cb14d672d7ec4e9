{#- On Redshift: a few hundred rows, on every node. -#}
{{ config(dist="all", sort="country") }}

with

sales as (

    select * from {{ ref("fct_rental_sales") }}

),

final as (

    select
        -- keys
        country,

        -- numbers
        cast(sum(sale_amount) as decimal(18, 2)) as sales_amount,
        count(*) as order_count
    from sales
    group by country

)

select * from final
