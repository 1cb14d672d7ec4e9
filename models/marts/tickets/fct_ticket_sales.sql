{#- On Redshift: sales are found by id, so spread by it. A sale is rewritten where it
    has changed, or what it is completed with is known better by a late change. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    dist="ticket_sale_id",
    sort="sold_at",
) }}

{% set increment = begin_increment() %}
{% set sale = parent_row(
    ref("int_tickit__sale_history"), "tickit.sale", "ticket_sale_id"
) %}
{% set buyer = parent_row(
    ref("int_tickit__user_history"), "tickit.user", "user_id", column="buyer_id",
    attributes={
        "buyer_username": "username",
        "buyer_name": full_name("versions"),
        "buyer_city": "city",
        "buyer_state": "state",
    },
) %}
{% set seller = parent_row(
    ref("int_tickit__user_history"), "tickit.user", "user_id", column="seller_id",
    attributes={
        "seller_username": "username",
        "seller_name": full_name("versions"),
        "seller_state": "state",
    },
) %}
{% set event = parent_row(
    ref("int_tickit__event_history"), "tickit.event", "event_id",
    attributes=["event_name", "category_id"],
) %}
{% set category = parent_row(
    ref("int_tickit__category_history"), "tickit.category", "category_id",
    attributes=["category_group", "category_name"],
) %}
{% set day = parent_row(
    ref("int_tickit__date_history"), "tickit.date", "date_id",
    attributes={
        "quarter_number": "cast(extract(quarter from calendar_date) as integer)",
    },
) %}
{% set first_purchase = parent_row(
    ref("int_tickets__buyers_dated"), none, "user_id", column="buyer_id",
    attributes={"buyer_first_purchase_date": "first_purchase_date"},
) %}
{% set first_sale = parent_row(
    ref("int_tickets__sellers_dated"), none, "user_id", column="seller_id",
    attributes={"seller_first_sale_date": "first_sale_date"},
) %}
{% set changed = changed_keys(
    increment,
    "ticket_sale_id",
    [sale, buyer, seller, event, category, day, first_purchase, first_sale],
    instant="recorded_at"
) %}

with

buyers as (

    {{ newest_versions(first_purchase) }}

),

sellers as (

    {{ newest_versions(first_sale) }}

),

buyer_users as (

    {{ dated_versions(buyer) }}

),

seller_users as (

    {{ dated_versions(seller) }}

),

events as (

    {{ dated_versions(event) }}

),

categories as (

    {{ dated_versions(category) }}

),

dates as (

    {{ dated_versions(day) }}

),

sale_versions as (

    select
        *,
        {{ recorded_at("ticket_sale_id", "sold_at") }} as recorded_at
    from {{ ref("int_tickit__sale_history") }}
    {%- if not increment.is_full_refresh %}
    where ticket_sale_id in (
        {{ changed }}
    )
    {%- endif %}

),

sales as (

    select * from sale_versions
    where is_current and not is_deleted

),

-- Who and what it was when the shop recorded the sale: what changes later changes no
-- sale. One whose user, event or day the lake does not have yet is a sale, too.
completed as (

    select
        sales.ticket_sale_id,
        sales.listing_id,
        sales.seller_id,
        sales.buyer_id,
        sales.event_id,
        sales.date_id,
        sales.sold_ticket_count,
        sales.tickets_amount,
        sales.commission_amount,
        sales.sold_at,
        sales.recorded_at,
        sales._commit_id,
        buyer_users.buyer_username,
        buyer_users.buyer_name,
        buyer_users.buyer_city,
        buyer_users.buyer_state,
        buyers.buyer_first_purchase_date,
        seller_users.seller_username,
        seller_users.seller_name,
        seller_users.seller_state,
        sellers.seller_first_sale_date,
        events.event_name,
        events.category_id,
        dates.quarter_number
    from sales
    left join buyers
        on sales.buyer_id = buyers.user_id
    left join sellers
        on sales.seller_id = sellers.user_id
    left join buyer_users
        on
            sales.buyer_id = buyer_users.user_id
            and {{ valid_at("buyer_users", "sales.recorded_at") }}
    left join seller_users
        on
            sales.seller_id = seller_users.user_id
            and {{ valid_at("seller_users", "sales.recorded_at") }}
    left join events
        on
            sales.event_id = events.event_id
            and {{ valid_at("events", "sales.recorded_at") }}
    left join dates
        on
            sales.date_id = dates.date_id
            and {{ valid_at("dates", "sales.recorded_at") }}

),

final as (

    select
        -- keys
        completed.ticket_sale_id,
        completed.listing_id,
        completed.seller_id,
        completed.buyer_id,
        completed.event_id,
        completed.category_id,
        completed.date_id,

        -- attributes
        categories.category_group,
        categories.category_name,
        completed.event_name,
        completed.buyer_username,
        completed.buyer_name,
        completed.buyer_city,
        completed.buyer_state,
        completed.seller_username,
        completed.seller_name,
        completed.seller_state,

        -- numbers
        completed.quarter_number,
        cast(
            round(completed.tickets_amount / nullif(completed.sold_ticket_count, 0), 2)
            as decimal(18, 2)
        ) as ticket_amount,
        completed.sold_ticket_count,
        completed.tickets_amount,
        cast(
            round(
                100 * completed.commission_amount / nullif(completed.tickets_amount, 0),
                2
            ) as decimal(7, 2)
        ) as commission_percent,
        completed.commission_amount,
        cast(
            completed.tickets_amount - completed.commission_amount as decimal(18, 2)
        ) as earnings_amount,

        -- times
        completed.sold_at,
        cast(completed.sold_at as date) as sale_date,
        completed.buyer_first_purchase_date,
        completed.seller_first_sale_date,
        completed.recorded_at,

        -- metadata
        completed._commit_id
    from completed
    left join categories
        on
            completed.category_id = categories.category_id
            and {{ valid_at("categories", "completed.recorded_at") }}

)

select * from final
