{{ config(dist="event_id", sort="event_id") }}

with

events as (

    select * from {{ ref("int_tickit__event_current") }}

),

categories as (

    select * from {{ ref("int_tickit__category_current") }}

),

venues as (

    select * from {{ ref("int_tickit__venue_current") }}

),

dates as (

    select * from {{ ref("int_tickit__date_current") }}

),

-- An event whose venue, category or day the shop does not have is still an event.
completed as (

    select
        events.event_id,
        events.venue_id,
        events.category_id,
        events.date_id,
        events.event_name,
        events.starts_at,
        venues.venue_name,
        venues.venue_city,
        venues.venue_state,
        venues.seat_count,
        categories.category_group,
        categories.category_name,
        categories.category_description,
        dates.week_number,
        dates.quarter_number,
        coalesce(dates.is_holiday, false) as is_holiday
    from events
    left join categories
        on events.category_id = categories.category_id
    left join venues
        on events.venue_id = venues.venue_id
    left join dates
        on events.date_id = dates.date_id

),

final as (

    select
        -- keys
        event_id,
        venue_id,
        category_id,
        date_id,

        -- attributes
        event_name,
        venue_name,
        venue_city,
        venue_state,
        category_group,
        category_name,
        category_description,

        -- numbers
        seat_count,
        quarter_number,
        week_number,

        -- flags
        is_holiday,

        -- times
        starts_at
    from completed

)

select * from final
