with

records as (

    select * from {{ ref("stg_smoothies__purchases") }}

),

purchases as (

    select
        *,
        cast(
            purchase_price_amount + coalesce(supplement_price_amount, 0)
            as decimal(18, 2)
        ) as unit_amount,
        cast(1 - coalesce(member_discount, 0) as decimal(5, 2)) as share_paid
    from records
    where not is_tombstone

),

-- Exact decimals throughout; half a cent is rounded away from zero.
priced as (

    select
        *,
        cast(
            round(cast(quantity * unit_amount * share_paid as decimal(38, 4)), 2)
            as decimal(18, 2)
        ) as expected_purchase_amount
    from purchases

),

-- Where a part or the total is missing, the total does not follow from parts either.
checked as (

    select
        *,
        coalesce(total_purchase_amount <> expected_purchase_amount, true)
            as is_discrepant
    from priced

),

final as (

    select
        -- keys
        record_key,
        transaction_id,
        product_id,

        -- numbers
        purchase_price_amount,
        quantity,
        member_discount,
        supplement_price_amount,
        total_purchase_amount,
        expected_purchase_amount,

        -- flags
        is_member,
        has_supplements,
        is_discrepant,

        -- times
        purchased_at,

        -- metadata
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
    from checked

)

select * from final
