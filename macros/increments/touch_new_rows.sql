{#- Touches the days in which the new rows of a stream lie, and with a key also the days in which
    older rows of the same keys lie. -#}
{% macro touch_new_rows(increment, rows, stream, time_column, key=none) -%}
    {%- set read = read_of_stream(increment, stream) -%}
    {%- if not increment.is_everything and read.after < read.to -%}
        {%- set rows = queryable(rows) -%}
        {%- set condition = new_rows(increment, stream) -%}
        {%- set fresh = lake_rows(
            "select " ~ day_text(time_column)
            ~ (", min(" ~ key ~ "), max(" ~ key ~ ")" if key)
            ~ " from " ~ rows ~ " where " ~ condition
            ~ " group by " ~ day_text(time_column),
            [["2026-01-02", 1, 9], ["2026-01-05", 7, 8], ["none", none, none]],
        ) -%}
        {%- do touch_days_in(increment, fresh) -%}
        {%- if key -%}
            {%- do touch_old_versions(increment, rows, key, condition, fresh) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- The days in which rows with the keys of the new ones lie now, and the keys that have
    records in several partitions: of those the row alone does not tell which record is the
    last, so `older_rows_of_moved` asks for all of them. -#}
{% macro touch_old_versions(increment, rows, key, condition, fresh) -%}
    {#- The new keys of one day lie close together: most files hold none of them. -#}
    {%- set ranges = [] -%}
    {%- for row in fresh if row[1] is not none -%}
        {%- do ranges.append(key_range("kept." ~ key, row[1], row[2])) -%}
    {%- endfor -%}
    {%- if ranges -%}
        {%- set has_moved -%}
            (
                kept.has_moved
                or kept._kafka_topic_id <> fresh._kafka_topic_id
                or kept._kafka_partition <> fresh._kafka_partition
            )
        {%- endset -%}
        {%- set old_versions -%}
            from {{ this }} as kept
            inner join (
                select {{ key }}, _kafka_topic_id, _kafka_partition
                from {{ rows }}
                where {{ condition }}
            ) as fresh
                on kept.{{ key }} = fresh.{{ key }}
            where ({{ ranges | join(" or ") }})
        {%- endset -%}
        {%- set found = lake_rows(
            "select " ~ day_text("kept." ~ increment.time_column)
            ~ ", min(case when " ~ has_moved ~ " then kept." ~ key ~ " end)"
            ~ ", max(case when " ~ has_moved ~ " then kept." ~ key ~ " end) "
            ~ old_versions
            ~ " group by " ~ day_text("kept." ~ increment.time_column),
            [["2026-01-04", 1, 3], ["2026-01-05", none, none]],
        ) -%}
        {%- do touch_days_in(increment, found) -%}
        {%- set moved = [] -%}
        {%- for row in found if row[1] is not none -%}
            {%- do moved.append(key_range(key, row[1], row[2])) -%}
        {%- endfor -%}
        {%- if moved -%}
            {%- do increment.update({"moved": (
                "(" ~ moved | join(" or ") ~ ") and " ~ key ~ " in (select kept." ~ key ~ " "
                ~ old_versions ~ " and " ~ has_moved ~ ")"
            )}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- A condition for the records before this increment of the keys that have records in several
    partitions. Only for them the model's row does not tell which record is the last;
    `increment.moved` is null when there are none. -#}
{% macro older_rows_of_moved(increment, stream) -%}
    _commit_id <= {{ increment.reads[stream].after }} and {{ increment.moved }}
{%- endmacro %}

{#- The day of a time as text, `none` when it has none of the years 2 to 9998. A time that no
    calendar of ours knows goes with those that are missing. -#}
{% macro day_text(time_column) -%}
    case
        when {{ is_dated(time_column) }}
            then cast(cast({{ time_column }} as date) as varchar(10))
        else 'none'
    end
{%- endmacro %}

{#- A condition for times of the years 2 to 9998. -#}
{% macro is_dated(time_column) -%}
    {{ time_column }} >= cast('0002-01-01 00:00:00' as timestamp)
    and {{ time_column }} < cast('9999-01-01 00:00:00' as timestamp)
{%- endmacro %}

{#- A condition for keys from a first to a last one. -#}
{% macro key_range(column, first, last) -%}
    ({{ column }} between {{ sql_literal(first) }} and {{ sql_literal(last) }})
{%- endmacro %}

{#- Touches the days that a query found. -#}
{% macro touch_days_in(increment, rows) -%}
    {%- for row in rows -%}
        {%- if row[0] == "none" -%}
            {%- do increment.update({"has_timeless": true}) -%}
        {%- else -%}
            {%- do touch_day(increment, calendar_day(row[0])) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- A number or a text as SQL writes it. A backslash is an escape to one engine and itself to the
    other; its number is neither. -#}
{% macro sql_literal(value) -%}
    {%- if value is string -%}
        {%- set text = "'" ~ value | replace("'", "''") ~ "'" -%}
        {{ return(
            "(" ~ text | replace("\\", "' || chr(92) || '") ~ ")" if "\\" in text else text
        ) }}
    {%- endif -%}
    {{ return(value) }}
{%- endmacro %}
