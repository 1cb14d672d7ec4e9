{#- A day's rows are asked for by its first moment and that of the next day: both engines
    then leave the other days' files alone. -#}
{% macro in_touched_days(increment, column, days_after=0) -%}
    {%- set ranges = day_ranges(increment, days_after) -%}
    {%- if increment.is_everything -%}
        1 = 1
    {%- elif not (ranges or increment.has_timeless) -%}
        1 = 0
    {%- else -%}
        {%- set conditions = [] -%}
        {%- if increment.has_timeless -%}
            {%- do conditions.append(
                "(" ~ column ~ " is null or not (" ~ is_dated(column) ~ "))"
            ) -%}
        {%- endif -%}
        {%- for first, end in ranges -%}
            {%- set from_first = column ~ " >= " ~ midnight(first) -%}
            {%- do conditions.append(
                "(" ~ from_first
                ~ (" and " ~ column ~ " < " ~ midnight(end) if end is not none)
                ~ ")"
            ) -%}
        {%- endfor -%}
        ({{ conditions | join(" or ") }})
    {%- endif -%}
{%- endmacro %}

{% macro midnight(day) -%}
    {{ return("cast('" ~ day.isoformat() ~ " 00:00:00' as timestamp)") }}
{%- endmacro %}

{#- The touched days as ranges, each of its first day and the day after its last (none: it
    has no end). Many ranges become one that spans them: the rows between are rewritten as
    they are. -#}
{% macro day_ranges(increment, days_after=0) -%}
    {%- set one_day = modules.datetime.timedelta(days=1) -%}
    {%- set ranges = [] -%}
    {%- for day in increment.days | sort -%}
        {%- set is_last = increment.onwards_from is not none and day >= increment.onwards_from -%}
        {%- set end = none if is_last else day + one_day * (1 + days_after) -%}
        {%- if ranges and (ranges[-1][1] is none or ranges[-1][1] >= day) -%}
            {%- set first = ranges.pop() -%}
            {%- do ranges.append([first[0], none if first[1] is none else end]) -%}
        {%- else -%}
            {%- do ranges.append([day, end]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if ranges | length > 100 -%}
        {{ return([[ranges[0][0], ranges[-1][1]]]) }}
    {%- endif -%}
    {{ return(ranges) }}
{%- endmacro %}
