{#- Adds the affected days that a model or its parent recorded after an increment, and those of
    unfinished runs. -#}
{% macro add_recorded_days(increment, model_name, after, runs=()) -%}
    {%- for row in increment.recorded.days
        if row.model_name == model_name and not row.is_end
        and (row.increment_id > after or row.run_id in runs) -%}
        {%- if row.day is none and row.is_onwards -%}
            {%- do increment.update({"is_full_refresh": true}) -%}
        {%- elif row.day is none -%}
            {%- do increment.update({"has_undated": true}) -%}
        {%- else -%}
            {%- do add_affected_day(increment, row.day, row.is_onwards) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Adds one day. -#}
{% macro add_affected_day(increment, day, is_onwards=false) -%}
    {%- if day not in increment.days -%}
        {%- do increment.days.append(day) -%}
    {%- endif -%}
    {%- if is_onwards and (
        increment.onwards_from is none or day < increment.onwards_from
    ) -%}
        {%- do increment.update({"onwards_from": day}) -%}
    {%- endif -%}
{%- endmacro %}

{% macro add_affected_days_of(
    increment, relation, days_before=0, is_onwards=false, has_same_days=true
) -%}
    {%- if queries_lake() -%}
        {%- set name = relation.schema ~ "." ~ relation.identifier -%}
        {%- set after = read_to(increment, name) -%}
        {%- set to = increment_ids(increment, name).committed -%}
        {%- if to == 0 and not increment.is_full_refresh and writes_rows() -%}
            {%- set node = node_of(relation) -%}
            {%- if node.config.incremental_strategy not in strategies_of_increments() -%}
                {%- do raise_unfollowed_error(increment, [name]) -%}
            {%- endif -%}
            {{ raise_error(
                name ~ " has no read point in " ~ increment_tables().read_points,
                refresh_command(node.unique_id),
            ) }}
        {%- endif -%}
        {%- do increment.reads.update({name: {
            "after": after, "to": to, "table_uuid": none, "table_since": 0
        }}) -%}
        {%- if not increment.is_full_refresh -%}
            {%- set theirs = {
                "is_full_refresh": false, "has_undated": false, "days": [],
                "onwards_from": none, "recorded": increment.recorded,
            } -%}
            {%- do add_recorded_days(theirs, name, after) -%}
            {%- do increment.update({
                "is_full_refresh": (
                    theirs.is_full_refresh
                    or (after != to and not has_same_days)
                    or (theirs.has_undated and (days_before > 0 or is_onwards))
                ),
                "has_undated": increment.has_undated or theirs.has_undated,
            }) -%}
            {%- for day in theirs.days -%}
                {%- for step in range(days_before + 1) -%}
                    {%- do add_affected_day(
                        increment,
                        day - modules.datetime.timedelta(days=step),
                        is_onwards or day == theirs.onwards_from,
                    ) -%}
                {%- endfor -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Adds the days of a stream's new rows and, with a key, the days of existing rows with the same
    keys. -#}
{% macro add_days_of_new_rows(increment, rows, stream, time_column, key=none) -%}
    {%- set read = read_of_stream(increment, stream) -%}
    {%- if not increment.is_full_refresh and read.after < read.to -%}
        {%- set rows = queryable(rows) -%}
        {%- set condition = new_rows(increment, stream) -%}
        {%- set new_records = lake_rows(
            "select " ~ day_text(time_column)
            ~ (", min(" ~ key ~ "), max(" ~ key ~ ")" if key)
            ~ " from " ~ rows ~ " where " ~ condition
            ~ " group by " ~ day_text(time_column),
            [["2026-01-02", 1, 9], ["2026-01-05", 7, 8], ["none", none, none]],
        ) -%}
        {%- do add_affected_days_in(increment, new_records) -%}
        {%- if key -%}
            {%- do add_days_of_old_versions(increment, rows, key, condition, new_records) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Adds the days of existing rows with the keys of new records, and collects the keys that have
    records in several partitions: their row alone does not show which record is the last, so
    `older_rows_of_repartitioned` selects all their records. -#}
{% macro add_days_of_old_versions(increment, rows, key, condition, new_records) -%}
    {#- The new keys of one day are close together: most files contain none of them. -#}
    {%- set ranges = [] -%}
    {%- for row in new_records if row[1] is not none -%}
        {%- do ranges.append(key_range("existing." ~ key, row[1], row[2])) -%}
    {%- endfor -%}
    {%- if ranges -%}
        {%- set is_repartitioned -%}
            (
                existing.has_moved
                or existing._kafka_topic_id <> new_records._kafka_topic_id
                or existing._kafka_partition <> new_records._kafka_partition
            )
        {%- endset -%}
        {%- set old_versions -%}
            from {{ this }} as existing
            inner join (
                select {{ key }}, _kafka_topic_id, _kafka_partition
                from {{ rows }}
                where {{ condition }}
            ) as new_records
                on existing.{{ key }} = new_records.{{ key }}
            where ({{ ranges | join(" or ") }})
        {%- endset -%}
        {%- set found = lake_rows(
            "select " ~ day_text("existing." ~ increment.time_column)
            ~ ", min(case when " ~ is_repartitioned ~ " then existing." ~ key ~ " end)"
            ~ ", max(case when " ~ is_repartitioned ~ " then existing." ~ key ~ " end) "
            ~ old_versions
            ~ " group by " ~ day_text("existing." ~ increment.time_column),
            [["2026-01-04", 1, 3], ["2026-01-05", none, none]],
        ) -%}
        {%- do add_affected_days_in(increment, found) -%}
        {%- set repartitioned = [] -%}
        {%- for row in found if row[1] is not none -%}
            {%- do repartitioned.append(key_range(key, row[1], row[2])) -%}
        {%- endfor -%}
        {%- if repartitioned -%}
            {%- do increment.update({"repartitioned": (
                "(" ~ repartitioned | join(" or ") ~ ") and " ~ key ~ " in (select existing."
                ~ key ~ " "
                ~ old_versions ~ " and " ~ is_repartitioned ~ ")"
            )}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- A condition for already read records of keys with records in several partitions, whose row
    does not show which record is the last; `increment.repartitioned` is none if there are none. -#}
{% macro older_rows_of_repartitioned(increment, stream) -%}
    _commit_id <= {{ increment.reads[stream].after }} and {{ increment.repartitioned }}
{%- endmacro %}

{#- The day of a timestamp as text; `none` outside the years 2 to 9998, as for a missing
    timestamp. -#}
{% macro day_text(time_column) -%}
    case
        when {{ is_dated(time_column) }}
            then cast(cast({{ time_column }} as date) as varchar(10))
        else 'none'
    end
{%- endmacro %}

{#- A condition for timestamps of the years 2 to 9998. -#}
{% macro is_dated(time_column) -%}
    {{ time_column }} >= cast('0002-01-01 00:00:00' as timestamp)
    and {{ time_column }} < cast('9999-01-01 00:00:00' as timestamp)
{%- endmacro %}

{#- A condition for a range of keys. -#}
{% macro key_range(column, first, last) -%}
    ({{ column }} between {{ sql_literal(first) }} and {{ sql_literal(last) }})
{%- endmacro %}

{#- Adds the days that a query returned. -#}
{% macro add_affected_days_in(increment, rows) -%}
    {%- for row in rows -%}
        {%- if row[0] == "none" -%}
            {%- do increment.update({"has_undated": true}) -%}
        {%- else -%}
            {%- do add_affected_day(increment, calendar_day(row[0])) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Filters by the start of a day and of the next day, so that both engines skip the files of
    other days. -#}
{% macro in_affected_days(increment, column, days_after=0) -%}
    {%- set ranges = day_ranges(increment, days_after) -%}
    {%- if increment.is_full_refresh -%}
        1 = 1
    {%- elif not (ranges or increment.has_undated) -%}
        1 = 0
    {%- else -%}
        {%- set conditions = [] -%}
        {%- if increment.has_undated -%}
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

{#- The start of a day. -#}
{% macro midnight(day) -%}
    {{ return("cast('" ~ day.isoformat() ~ " 00:00:00' as timestamp)") }}
{%- endmacro %}

{#- The affected days as ranges: the first day and the day after the last (none: open-ended). More
    than 100 ranges are merged into one; the rows between are rewritten unchanged. This is decided
    before ranges are extended by `days_after`, so that deleted and inserted rows cover the same
    days. -#}
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

{#- Appends a range, merging it with the last one if they overlap or are adjacent. -#}
{% macro add_range(ranges, first, end) -%}
    {%- if ranges and (ranges[-1][1] is none or ranges[-1][1] >= first) -%}
        {%- set before = ranges.pop() -%}
        {%- set has_no_end = before[1] is none or end is none -%}
        {%- do ranges.append([before[0], none if has_no_end else end]) -%}
    {%- else -%}
        {%- do ranges.append([first, end]) -%}
    {%- endif -%}
{%- endmacro %}
