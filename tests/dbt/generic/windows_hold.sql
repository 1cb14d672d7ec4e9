{#- The windows of each group count each of its events once per window that contains its time, no
    more and no less.

    events: The model with the events. by: The grouping column of both. sums: The value of an event
    that each column of the windows sums. time_column: The time of an event; by default, the
    variable `sales_window_time`. -#}
{% test windows_hold(model, events, by, sums, time_column=none) %}

{%- set window = sales_window() %}
{%- set length = window.length_minutes * 60 %}
{%- set slide = window.slide_minutes * 60 %}

with

timed as (

    select
        {{ by }},
        {% for mine, theirs in sums.items() %}
            {{ theirs }} as {{ mine }},
        {% endfor %}
        {{ epoch_seconds(time_column or window.time_column) }} as event_second
    from {{ events }}

),

-- How many windows an event lies in, counted otherwise than the macro does: the starts
-- up to its second, less those whose window had ended by then.
counted as (

    select
        *,
        cast(
            floor(event_second / cast({{ slide }} as decimal(18, 0)))
            - floor((event_second - {{ length }}) / cast({{ slide }} as decimal(18, 0)))
            as integer
        ) as window_count
    from timed

),

expected as (

    select
        {{ by }},
        {% for mine in sums %}
            sum({{ mine }} * window_count) as {{ mine }}{{ "," if not loop.last }}
        {% endfor %}
    from counted
    group by {{ by }}

),

actual as (

    select
        {{ by }},
        {% for mine in sums %}
            sum({{ mine }}) as {{ mine }}{{ "," if not loop.last }}
        {% endfor %}
    from {{ model }}
    group by {{ by }}

)

select
    expected.{{ by }} as expected_{{ by }},
    actual.{{ by }} as actual_{{ by }},
    {% for mine in sums %}
        expected.{{ mine }} as expected_{{ mine }},
        actual.{{ mine }} as actual_{{ mine }}{{ "," if not loop.last }}
    {% endfor %}
from expected
full outer join actual
    on expected.{{ by }} = actual.{{ by }}
where
    expected.{{ by }} is null
    or actual.{{ by }} is null
    {% for mine in sums %}
        or expected.{{ mine }} <> actual.{{ mine }}
    {% endfor %}

{% endtest %}
