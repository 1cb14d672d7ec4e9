{#- On Redshift: sales are found by id, so spread by it. A sale is rewritten where it,
    or what it is completed with, has changed. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    dist="ticket_sale_id",
    sort="sold_at",
) }}

{% set increment = begin_increment() %}
{% set changed = changed_keys(increment, "ticket_sale_id", [
    {
        "stream": "tickit.sale",
        "history": ref("int_tickit__sale_history"),
        "key": "ticket_sale_id",
    },
    {
        "stream": "tickit.user",
        "history": ref("int_tickit__user_history"),
        "key": "user_id",
        "columns": ["buyer_id", "seller_id"],
    },
    {
        "stream": "tickit.event",
        "history": ref("int_tickit__event_history"),
        "key": "event_id",
        "columns": ["event_id"],
    },
    {
        "stream": "tickit.category",
        "history": ref("int_tickit__category_history"),
        "key": "category_id",
        "columns": ["category_id"],
    },
    {
        "stream": "tickit.date",
        "history": ref("int_tickit__date_history"),
        "key": "date_id",
        "columns": ["date_id"],
    },
]) %}

with

buyers as (

    select * from {{ ref("int_tickets__buyers_extracted") }}

),

sellers as (

    select * from {{ ref("int_tickets__sellers_extracted") }}

),

users as (

    {{ dated_versions(ref("int_tickit__user_history"), "user_id") }}

),

events as (

    {{ dated_versions(ref("int_tickit__event_history"), "event_id") }}

),

categories as (

    {{ dated_versions(ref("int_tickit__category_history"), "category_id") }}

),

dates as (

    {{ dated_versions(ref("int_tickit__date_history"), "date_id") }}

),

sale_versions as (

    select
        *,
        min(valid_from_at) over (partition by ticket_sale_id) as recorded_at
    from {{ ref("int_tickit__sale_history") }}
    {%- if not increment.is_everything %}
    where ticket_sale_id in (
        {{ changed }}
        union
        -- Those of a user whose first purchase, or first sale, is on another day now.
        select kept.ticket_sale_id
        from {{ this }} as kept
        left join buyers
            on kept.buyer_id = buyers.user_id
        left join sellers
            on kept.seller_id = sellers.user_id
        where
            kept.buyer_first_purchase_date <> buyers.first_purchase_date
            or kept.seller_first_sale_date <> sellers.first_sale_date
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
        buyer_users.username as buyer_username,
        {{ full_name("buyer_users") }} as buyer_name,
        buyer_users.city as buyer_city,
        buyer_users.state as buyer_state,
        buyers.first_purchase_date as buyer_first_purchase_date,
        seller_users.username as seller_username,
        {{ full_name("seller_users") }} as seller_name,
        seller_users.state as seller_state,
        sellers.first_sale_date as seller_first_sale_date,
        events.event_name,
        events.category_id,
        dates.calendar_date
    from sales
    left join buyers
        on sales.buyer_id = buyers.user_id
    left join sellers
        on sales.seller_id = sellers.user_id
    left join users as buyer_users
        on
            sales.buyer_id = buyer_users.user_id
            and {{ held_when("buyer_users", "sales.recorded_at") }}
    left join users as seller_users
        on
            sales.seller_id = seller_users.user_id
            and {{ held_when("seller_users", "sales.recorded_at") }}
    left join events
        on
            sales.event_id = events.event_id
            and {{ held_when("events", "sales.recorded_at") }}
    left join dates
        on
            sales.date_id = dates.date_id
            and {{ held_when("dates", "sales.recorded_at") }}

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
        cast(extract(quarter from completed.calendar_date) as integer)
            as quarter_number,
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
            and {{ held_when("categories", "completed.recorded_at") }}

)

select * from final
