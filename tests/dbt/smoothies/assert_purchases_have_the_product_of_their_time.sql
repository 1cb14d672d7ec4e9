with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}

),

products as (

    select * from {{ ref("dim_products") }}

),

-- Found otherwise than the fact does: the last version that had begun, else the first.
ranked as (

    select
        purchases.record_key,
        purchases.product_key as actual_product_key,
        purchases.product_name as actual_product_name,
        purchases.product_price_amount as actual_price_amount,
        purchases.purchased_at,
        products.product_key,
        products.product_name,
        products.product_price_amount,
        products.valid_to_at,
        row_number() over (
            partition by purchases.record_key
            order by
                case
                    when products.valid_from_at <= purchases.purchased_at
                        then products.valid_from_at
                end desc nulls last,
                products.valid_from_at asc nulls last
        ) as closeness
    from purchases
    left join products
        on purchases.product_id = products.product_id

),

expected as (

    select
        *,
        case
            when valid_to_at <= purchased_at then null
            else product_key
        end as expected_product_key
    from ranked
    where closeness = 1

)

select
    record_key,
    actual_product_key,
    expected_product_key
from expected
where
    coalesce(actual_product_key, '') <> coalesce(expected_product_key, '')
    or (
        expected_product_key is not null
        and (
            coalesce(actual_product_name, '') <> coalesce(product_name, '')
            or coalesce(actual_price_amount, -1) <> coalesce(product_price_amount, -1)
        )
    )
