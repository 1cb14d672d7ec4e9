with

-- In hundredths of a cent, so that nothing is rounded here; rounding the total may
-- take half a cent either way.
purchases as (

    select
        record_key,
        cast(total_purchase_amount * 10000 as decimal(38, 0)) as total,
        cast(
            quantity
            * (purchase_price_amount + coalesce(supplement_price_amount, 0)) * 100
            * (1 - coalesce(member_discount, 0)) * 100
            as decimal(38, 0)
        ) as parts
    from {{ ref("fct_purchases_enriched") }}

),

wrong as (

    select record_key
    from purchases
    where
        total is null
        or parts is null
        or abs(total - parts) > 50
        -- Just half a cent goes away from zero.
        or (abs(total - parts) = 50 and abs(total) < abs(parts))

),

reported as (

    select record_key
    from {{ ref("rpt_purchase_discrepancies") }}

)

select
    wrong.record_key as wrong_record_key,
    reported.record_key as reported_record_key
from wrong
full outer join reported
    on wrong.record_key = reported.record_key
where
    wrong.record_key is null
    or reported.record_key is null
