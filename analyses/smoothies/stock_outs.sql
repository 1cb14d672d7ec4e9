-- Whose shelf ran lowest, and how often it had to be filled. An existing level of 0 or
-- less means that it was sold out.
with

movements as (

    select * from {{ ref("fct_inventory_movements") }}

),

sales as (

    select * from {{ ref("rpt_product_sales") }}

),

described as (

    select
        product_id,
        product_name,
        row_number() over (
            partition by product_id
            order by valid_from_at desc
        ) as recency
    from {{ ref("dim_products") }}

),

shelves as (

    select
        product_id,
        count(*) as restock_count,
        sum(stock_quantity) as restocked_quantity,
        min(existing_level) as lowest_level,
        sum(case when existing_level <= 0 then 1 else 0 end) as stock_out_count,
        min(moved_at) as first_restocked_at,
        max(moved_at) as last_restocked_at
    from movements
    group by product_id

),

final as (

    select
        -- keys
        shelves.product_id,

        -- attributes
        described.product_name,

        -- numbers
        shelves.lowest_level,
        shelves.stock_out_count,
        shelves.restock_count,
        shelves.restocked_quantity,
        sales.quantity as sold_quantity,

        -- times
        shelves.first_restocked_at,
        shelves.last_restocked_at
    from shelves
    left join sales
        on shelves.product_id = sales.product_id
    left join described
        on
            shelves.product_id = described.product_id
            and described.recency = 1

)

select * from final
order by
    lowest_level asc,
    restock_count desc,
    product_id asc
