{#- On Redshift: listings are found by id, so spread by it. A listing is rewritten where
    it has changed, or its seller, event, category or venue. -#}
{{ config(
    materialized="incremental",
    incremental_strategy="rewrite_keys",
    dist="listing_id",
    sort="offered_at",
) }}

{% set increment = begin_increment() %}
{% set listing = parent_row(
    ref("int_tickit__listing_history"), "tickit.listing", "listing_id"
) %}
{% set seller = parent_row(
    ref("int_tickit__user_history"), "tickit.user", "user_id", column="seller_id",
    attributes={"seller_username": "username", "seller_name": full_name("versions")},
) %}
{% set event = parent_row(
    ref("int_tickit__event_history"), "tickit.event", "event_id",
    attributes=["event_name", "category_id", "venue_id", "starts_at"],
) %}
{% set category = parent_row(
    ref("int_tickit__category_history"), "tickit.category", "category_id",
    attributes=["category_group", "category_name"],
) %}
{% set venue = parent_row(
    ref("int_tickit__venue_history"), "tickit.venue", "venue_id",
    attributes=["venue_name", "venue_city", "venue_state"],
) %}
{% set changed = changed_keys(
    increment, "listing_id", [listing, seller, event, category, venue]
) %}

with

sellers as (

    {{ newest_versions(seller) }}

),

events as (

    {{ newest_versions(event) }}

),

categories as (

    {{ newest_versions(category) }}

),

venues as (

    {{ newest_versions(venue) }}

),

listing_versions as (

    select
        *,
        {{ recorded_at("listing_id", "offered_at") }} as recorded_at
    from {{ ref("int_tickit__listing_history") }}
    {%- if not increment.is_full_refresh %}
    where listing_id in (
        {{ changed }}
    )
    {%- endif %}

),

listings as (

    select * from listing_versions
    where is_current and not is_deleted

),

-- A listing is an offer of now: an event that is postponed is offered for its new day.
-- One whose seller or event the lake does not have yet is a listing, too.
completed as (

    select
        listings.*,
        sellers.seller_username,
        sellers.seller_name,
        events.event_name,
        events.category_id,
        events.venue_id,
        events.starts_at
    from listings
    left join sellers
        on listings.seller_id = sellers.user_id
    left join events
        on listings.event_id = events.event_id

),

final as (

    select
        -- keys
        completed.listing_id,
        completed.seller_id,
        completed.event_id,
        completed.category_id,
        completed.venue_id,
        completed.date_id,

        -- attributes
        categories.category_group,
        categories.category_name,
        completed.event_name,
        venues.venue_name,
        venues.venue_city,
        venues.venue_state,
        completed.seller_username,
        completed.seller_name,

        -- numbers
        completed.ticket_count,
        completed.ticket_amount,
        completed.listing_amount,

        -- times
        completed.starts_at,
        completed.offered_at,
        completed.recorded_at,

        -- metadata
        completed._commit_id
    from completed
    left join categories
        on completed.category_id = categories.category_id
    left join venues
        on completed.venue_id = venues.venue_id

)

select * from final
