{#- On Redshift: few products would fill few slices; rewritten by day. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite",
    partition_by="days(window_start_at)",
    dist="even",
    sort="window_start_at",
) }}

{% set window = sales_window() %}
{% set increment = begin_increment(
    time_column="window_start_at",
    settings={
        "length_minutes": window.length_minutes, "slide_minutes": window.slide_minutes
    },
) %}
-- The windows of a purchase may begin the day before.
{% do add_affected_days_of(
    increment, ref("fct_purchases_enriched"), days_before=window.days_before
) %}

with

purchases as (

    select * from {{ ref("fct_purchases_enriched") }}
    where {{ in_affected_days(
        increment, "purchased_at", days_after=window.days_before
    ) }}

),

-- All purchases, however late they came: a window is never closed.
purchases_in_windows as (

    {{ sliding_windows(
        "purchases",
        time_column="purchased_at",
        columns=["product_id", "quantity", "total_purchase_amount"],
        length_minutes=window.length_minutes,
        slide_minutes=window.slide_minutes,
    ) }}

),

final as (

    select
        -- keys
        product_id,
        window_start_at,

        -- attributes
        window_end_at,

        -- numbers
        cast(sum(total_purchase_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(quantity) as bigint) as quantity,
        count(*) as purchase_count
    from purchases_in_windows
    where {{ in_affected_days(increment, "window_start_at") }}
    group by product_id, window_start_at, window_end_at

)

select * from final
