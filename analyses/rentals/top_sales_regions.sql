-- Which regions sell most, and what part of all sales is theirs.
with

regions as (

    select * from {{ ref("rpt_region_sales") }}

),

all_sales as (

    select sum(sales_amount) as sales_amount
    from regions

),

final as (

    select
        -- keys
        regions.sales_region,

        -- numbers
        regions.sales_amount,
        regions.order_count,
        cast(regions.sales_amount / regions.order_count as decimal(18, 2))
            as average_amount,
        cast(100 * regions.sales_amount / all_sales.sales_amount as decimal(5, 2))
            as share_percent
    from regions
    cross join all_sales

)

select * from final
order by
    sales_amount desc,
    sales_region asc
