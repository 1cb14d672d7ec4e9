{#- On Redshift: few products would fill few slices; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(sales_date)",
    dist="even",
    sort="sales_date",
) }}

{% set increment = begin_increment(time_column="sales_date") %}
{% do add_affected_days_of(increment, ref("fct_purchases_enriched")) %}

with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}
    where {{ in_affected_days(increment, "purchased_at") }}

),

final as (

    select
        -- keys
        product_id,
        purchase_date as sales_date,

        -- numbers
        cast(sum(total_purchase_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(quantity) as bigint) as quantity,
        count(*) as purchase_count
    from purchases
    group by product_id, purchase_date

)

select * from final
