-- How much the region list leaves out: the share of unassigned sales, and the countries
-- that cause it, largest first. Add them to the seed `sales_regions` and build again.
with

sales as (

    select * from {{ ref("fct_rental_sales") }}

),

all_sales as (

    select
        sum(sale_amount) as sales_amount,
        count(*) as order_count
    from sales

),

unassigned as (

    select
        country,
        sum(sale_amount) as sales_amount,
        count(*) as order_count
    from sales
    where sales_region = 'Unassigned'
    group by country

),

final as (

    select
        -- keys
        unassigned.country,

        -- numbers
        unassigned.sales_amount,
        unassigned.order_count,
        cast(100 * unassigned.sales_amount / all_sales.sales_amount as decimal(5, 2))
            as amount_percent,
        cast(
            100 * cast(unassigned.order_count as decimal(18, 2)) / all_sales.order_count
            as decimal(5, 2)
        ) as order_percent
    from unassigned
    cross join all_sales

)

select * from final
order by
    sales_amount desc,
    country asc
