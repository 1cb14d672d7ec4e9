{#- Counts in whole seconds since 1970, which behave the same on all engines: an event is in the
    last window that began, and in each earlier one that has not ended. -#}
{% macro sliding_windows(relation, time_column, columns, length_minutes, slide_minutes) -%}
    {%- set length = whole_minutes("length_minutes", length_minutes) * 60 -%}
    {%- set slide = whole_minutes("slide_minutes", slide_minutes) * 60 -%}
    {%- set windows_per_event = (length / slide) | round(0, "ceil") | int -%}
    {%- set window_start = "events.last_start - steps.whole_number * " ~ slide -%}
    select
        {% for column in columns -%}
        events.{{ column }},
        {% endfor -%}
        {{ timestamp_from_epoch(window_start) }} as window_start_at,
        {{ timestamp_from_epoch(window_start ~ " + " ~ length) }} as window_end_at
    from (
        select
            {% for column in columns -%}
            timed.{{ column }},
            {% endfor -%}
            timed.event_second,
            -- The start of the last window that began. The remainder is taken twice, because that
            -- of a negative number is negative.
            timed.event_second
            - mod(mod(timed.event_second, {{ slide }}) + {{ slide }}, {{ slide }})
                as last_start
        from (
            select
                {% for column in columns -%}
                {{ column }},
                {% endfor -%}
                {{ epoch_seconds(time_column) }} as event_second
            from {{ relation }}
        ) as timed
    ) as events
    cross join (
        {{ whole_numbers(windows_per_event) }}
    ) as steps
    -- The window that began first may have ended already.
    where events.event_second < {{ window_start }} + {{ length }}
{%- endmacro %}
