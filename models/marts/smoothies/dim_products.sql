{#- On Redshift: every line joins it, so on every node; by product. -#}
{{ config(dist="all", sort="product_id") }}

{% set increment = begin_increment() %}

with

records as (

    select * from {{ ref("int_smoothies__products_changed") }}
    where {{ new_rows(increment, "smoothies.products") }}

),

versions as (

    {{ product_versions("records") }}

),

keyed as (

    select
        *,
        -- A version is named by its product and when it began.
        cast(
            product_id
            || '-' || cast({{ epoch_micros("valid_from_at") }} as varchar(20))
            as varchar(96)
        ) as product_key
    from versions

),

final as (

    select
        -- keys
        product_key,
        product_id,

        -- attributes
        product_category,
        product_name,
        product_size,

        -- numbers
        product_cogs_amount,
        product_price_amount,

        -- flags
        has_fruit,
        has_veggies,
        has_nuts,
        has_caffeine,
        is_first_version,
        is_current,

        -- times
        valid_from_at,
        valid_to_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from keyed

)

select * from final
