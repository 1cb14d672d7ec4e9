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

final as (

    select
        -- keys
        events.event_id,
        events.venue_id,
        events.category_id,
        events.date_id,

        -- attributes
        events.event_name,
        venues.venue_name,
        venues.venue_city,
        venues.venue_state,
        categories.category_group,
        categories.category_name,
        categories.category_description,

        -- numbers
        venues.seat_count,
        cast(extract(quarter from dates.calendar_date) as integer) as quarter_number,
        dates.week_number,

        -- flags
        coalesce(dates.is_holiday, false) as is_holiday,

        -- times
        events.starts_at
    from events
    -- An event whose venue, category or day the shop does not have is still an event.
    left join categories
        on events.category_id = categories.category_id
    left join venues
        on events.venue_id = venues.venue_id
    left join dates
        on events.date_id = dates.date_id

)

select * from final
