{#- On Redshift: running totals join by line; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(purchased_at)",
    dist="record_key",
    sort="purchased_at",
) }}

{% set increment = begin_increment(time_column="purchased_at") %}
-- A product that arrives late, or changes for a time gone by, completes earlier lines.
{% do add_days_of_changed_versions(
    increment,
    table=ref("dim_products"),
    records=ref("int_smoothies__products_changed"),
    stream="smoothies.products",
    key="product_id",
    attributes=product_attributes(),
    versions_of=product_versions,
) %}

with

purchases as (

    {{ new_and_existing_rows(
        increment,
        rows=ref("int_smoothies__purchases_checked"),
        stream="smoothies.purchases",
    ) }}

),

products as (

    select * from {{ ref("dim_products") }}

),

-- The first version is valid from the beginning. Versions of a product do not overlap,
-- so that no line finds two; one that finds none is a line all the same.
completed as (

    select
        purchases.*,
        products.product_key,
        products.product_category,
        products.product_name,
        products.product_size,
        products.product_cogs_amount,
        products.product_price_amount,
        products.has_fruit,
        products.has_veggies,
        products.has_nuts,
        products.has_caffeine,
        cast(purchases.purchased_at as date) as purchase_date,
        products.product_key is not null as is_known_product
    from purchases
    left join products
        on
            purchases.product_id = products.product_id
            and (
                products.is_first_version
                or purchases.purchased_at >= products.valid_from_at
            )
            and (
                products.is_current
                or purchases.purchased_at < products.valid_to_at
            )

),

final as (

    select
        -- keys
        record_key,
        transaction_id,
        product_id,
        product_key,

        -- attributes
        product_category,
        product_name,
        product_size,

        -- numbers
        product_cogs_amount,
        product_price_amount,
        purchase_price_amount,
        quantity,
        member_discount,
        supplement_price_amount,
        total_purchase_amount,
        expected_purchase_amount,

        -- flags
        is_known_product,
        has_fruit,
        has_veggies,
        has_nuts,
        has_caffeine,
        is_member,
        has_supplements,
        is_discrepant,

        -- times
        purchased_at,
        purchase_date,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from completed

)

select * from final
