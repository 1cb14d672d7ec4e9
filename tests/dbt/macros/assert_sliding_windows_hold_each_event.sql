{#- Lengths that are a multiple of the slide and that are not, and gaps between windows. -#}
{% set settings = [(10, 5), (10, 4), (3, 10)] %}

with

events as (

    select
        1 as event_id,
        cast('1970-01-01 00:00:00' as timestamp) as happened_at
    union all
    select
        2 as event_id,
        cast('1969-12-31 23:59:59.5' as timestamp) as happened_at
    union all
    select
        3 as event_id,
        cast('2026-03-08 02:30:00' as timestamp) as happened_at
    union all
    select
        4 as event_id,
        cast('2026-03-08 02:29:59.999999' as timestamp) as happened_at
    union all
    select
        5 as event_id,
        cast('1901-02-03 04:05:06.789' as timestamp) as happened_at
    union all
    select
        6 as event_id,
        cast(null as timestamp) as happened_at

),

actual as (

    {% for length, slide in settings %}
        select
            {{ length }} as length_minutes,
            {{ slide }} as slide_minutes,
            event_id,
            window_start_at,
            window_end_at
        from (
            {{ sliding_windows(
                "events",
                time_column="happened_at",
                columns=["event_id"],
                length_minutes=length,
                slide_minutes=slide,
            ) }}
        ) as windows
        {{ "union all" if not loop.last }}
    {% endfor %}

),

settings as (

    {% for length, slide in settings %}
        select
            {{ length }} as length_minutes,
            {{ slide }} as slide_minutes
        {{ "union all" if not loop.last }}
    {% endfor %}

),

-- Every minute of an hour around each event that is a start on the grid...
minutes as (

    select
        events.event_id,
        events.happened_at,
        cast(
            floor({{ epoch_seconds("events.happened_at") }} / cast(60 as decimal(18, 0)))
            as bigint
        ) + steps.whole_number - 30 as start_minute
    from events
    cross join (
        {{ whole_numbers(60) }}
    ) as steps

),

-- ...and whose window contains it.
expected as (

    select
        settings.length_minutes,
        settings.slide_minutes,
        minutes.event_id,
        {{ timestamp_from_epoch("minutes.start_minute * 60") }} as window_start_at,
        {{ timestamp_from_epoch(
            "(minutes.start_minute + settings.length_minutes) * 60"
        ) }} as window_end_at
    from minutes
    cross join settings
    where
        mod(minutes.start_minute, settings.slide_minutes) = 0
        and {{ timestamp_from_epoch("minutes.start_minute * 60") }} <= minutes.happened_at
        and {{ timestamp_from_epoch(
            "(minutes.start_minute + settings.length_minutes) * 60"
        ) }} > minutes.happened_at

),

both_sides as (

    select
        length_minutes,
        slide_minutes,
        event_id,
        window_start_at,
        window_end_at,
        1 as actual_count,
        0 as expected_count
    from actual
    union all
    select
        length_minutes,
        slide_minutes,
        event_id,
        window_start_at,
        window_end_at,
        0 as actual_count,
        1 as expected_count
    from expected

)

select
    length_minutes,
    slide_minutes,
    event_id,
    window_start_at,
    window_end_at,
    sum(actual_count) as actual_count,
    sum(expected_count) as expected_count
from both_sides
group by length_minutes, slide_minutes, event_id, window_start_at, window_end_at
having sum(actual_count) <> sum(expected_count)
