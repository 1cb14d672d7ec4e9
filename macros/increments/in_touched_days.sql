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

{#- The first moment of a day. -#}
{% macro midnight(day) -%}
    {{ return("cast('" ~ day.isoformat() ~ " 00:00:00' as timestamp)") }}
{%- endmacro %}

{#- The touched days as ranges, each of its first day and the day after its last (none: it
    has no end). Many ranges become one that spans them: the rows between are rewritten as
    they are. That is decided before any range is made longer, which lets ranges meet: what is
    deleted and what is read to fill it again must be of the same days. -#}
{% macro day_ranges(increment, days_after=0) -%}
    {%- set one_day = modules.datetime.timedelta(days=1) -%}
    {%- set ranges = [] -%}
    {%- for day in increment.days | sort -%}
        {%- set has_no_end = (
            increment.onwards_from is not none and day >= increment.onwards_from
        ) -%}
        {%- do add_range(ranges, day, none if has_no_end else day + one_day) -%}
    {%- endfor -%}
    {%- set whole = ranges -%}
    {%- if ranges | length > 100 -%}
        {%- set whole = [[ranges[0][0], ranges[-1][1]]] -%}
    {%- endif -%}
    {%- set longer = [] -%}
    {%- for first, end in whole -%}
        {%- do add_range(
            longer, first, none if end is none else end + one_day * days_after
        ) -%}
    {%- endfor -%}
    {{ return(longer) }}
{%- endmacro %}

{#- Adds a range that begins after those before it; where it meets the last, the two are
    one. -#}
{% macro add_range(ranges, first, end) -%}
    {%- if ranges and (ranges[-1][1] is none or ranges[-1][1] >= first) -%}
        {%- set before = ranges.pop() -%}
        {%- set has_no_end = before[1] is none or end is none -%}
        {%- do ranges.append([before[0], none if has_no_end else end]) -%}
    {%- else -%}
        {%- do ranges.append([first, end]) -%}
    {%- endif -%}
{%- endmacro %}
