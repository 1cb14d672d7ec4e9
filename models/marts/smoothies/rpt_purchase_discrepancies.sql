{#- On Redshift: read as it is, by time. -#}
{{ config(dist="even", sort="purchased_at") }}

with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}
    where is_discrepant

),

final as (

    select
        -- keys
        record_key,
        transaction_id,
        product_id,

        -- attributes
        product_name,

        -- numbers
        purchase_price_amount,
        quantity,
        member_discount,
        supplement_price_amount,
        total_purchase_amount,
        expected_purchase_amount,
        cast(total_purchase_amount - expected_purchase_amount as decimal(18, 2))
            as difference_amount,

        -- flags
        is_member,
        has_supplements,

        -- times
        purchased_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from purchases

)

select * from final
