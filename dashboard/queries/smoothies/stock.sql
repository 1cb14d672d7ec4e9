-- Stock
-- What the newest movement of each product left.
with

movements as (
    select
        product_id,
        new_level,
        moved_at,
        row_number() over (
            partition by product_id
            order by moved_at desc, _kafka_partition desc, _kafka_offset desc
        ) as newest_first
    from marts.fct_inventory_movements
)

select
    products.product_name,
    products.product_category,
    movements.new_level,
    movements.moved_at
from movements
inner join marts.dim_products as products
    on movements.product_id = products.product_id and products.is_current
where movements.newest_first = 1
order by movements.new_level, products.product_name
