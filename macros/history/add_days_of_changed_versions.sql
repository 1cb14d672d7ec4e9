{#- Compares the history as of this model's last read, recomputed from the records, with the
    current table. Only the time spans in which they differ affect days: a record without new
    values affects none. -#}
{% macro add_days_of_changed_versions(
    increment, table, records, stream, key, attributes, versions_of
) -%}
    {%- set theirs = recorded_read(table, stream) -%}
    {%- if queries_lake() -%}
        {%- do increment.follows.append(node_of(table).unique_id) -%}
    {%- endif -%}
    {%- if not theirs.is_recorded and queries_lake() and writes_rows()
        and not is_partial_build() and "deferred" not in increment.code -%}
        {{ raise_error(
            table ~ " has no read point in " ~ increment_tables().read_points,
            refresh_command(),
        ) }}
    {%- endif -%}
    {%- set read = read_of_stream(increment, stream, until=theirs) -%}
    {%- if not increment.is_full_refresh and read.after < read.to -%}
        {%- set records = queryable(records) -%}
        {%- set keys = (
            "(select " ~ key ~ " from " ~ records
            ~ " where " ~ new_rows(increment, stream) ~ ")"
        ) -%}
        {%- set before = versions_of(
            "(select * from " ~ records ~ " where _commit_id <= " ~ read.after
            ~ " and " ~ key ~ " in " ~ keys ~ ")"
        ) -%}
        {%- set now = "select * from " ~ table ~ " where " ~ key ~ " in " ~ keys -%}
        {%- set spans = changed_spans(before, now, key, attributes) -%}
        {%- set found = lake_rows(
            "select count(*) as span_count, " ~ day_text("min(starts_at)") ~ " as first_day"
            ~ " from (" ~ spans ~ ") as spans",
            [[1, "2026-01-01"]],
        )[0] -%}
        {%- if found[0] | int > 0 -%}
            {%- do add_affected_days_in(increment, lake_rows(
                rows_in_spans(increment, spans, key, found[1]), [["2026-01-03"]]
            )) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- A query of the days, as text, of a model's rows in the given time spans. A row outside the
    supported calendar is in every span. The first day as a literal lets engines skip the files of
    earlier days. -#}
{% macro rows_in_spans(increment, spans, key, first_day) -%}
    {%- set time_column = "existing." ~ increment.time_column -%}
    {%- set is_undated = (
        "(" ~ time_column ~ " is null or not (" ~ is_dated(time_column) ~ "))"
    ) -%}
    select distinct {{ day_text(time_column) }} as day_text
    from {{ this }} as existing
    inner join ({{ spans }}) as spans
        on
            existing.{{ key }} = spans.{{ key }}
            and (
                {{ is_undated }}
                or (
                    {{ time_column }} >= spans.starts_at
                    and {{ time_column }} < spans.ends_at
                )
            )
    {%- if first_day != "none" %}
    where
        {{ is_undated }}
        or {{ time_column }} >= {{ midnight(calendar_day(first_day)) }}
    {%- endif %}
{%- endmacro %}

{#- The time spans in which two histories differ: time is cut at the bounds of all versions, and
    each piece has a number for the content of either history, 0 for none. Both are read once:
    engines plan a query again for each reference. -#}
{% macro changed_spans(before, now, key, attributes) -%}
    {%- set sides = {"before": before, "now": now} -%}
    with

    all_versions as (

        {% for side, query in sides.items() -%}
        select
            '{{ side }}' as side,
            {{ key }},
            {% for attribute in attributes -%}
            {{ attribute }},
            {% endfor -%}
            is_first_version,
            valid_from_at,
            valid_to_at
        from ({{ query }}) as versions
        {{ "union all" if not loop.last }}
        {% endfor %}
    ),

    -- The first version is valid from the beginning, the current one to the end. Nulls are equal
    -- in an order.
    intervals as (

        select
            side,
            {{ key }},
            case
                when is_first_version then cast('0001-01-01 00:00:00' as timestamp)
                else valid_from_at
            end as valid_from,
            coalesce(valid_to_at, cast('9999-12-31 00:00:00' as timestamp)) as valid_until,
            dense_rank() over (
                partition by {{ key }}
                order by
                    {%- for attribute in attributes %}
                    {{ attribute }} asc nulls first,
                    {%- endfor %}
                    valid_from_at asc nulls first
            ) as content
        from all_versions

    ),

    -- At the bound of two versions the greater number is the one that begins.
    edges as (

        select
            intervals.{{ key }},
            case when ends.is_end = 1 then intervals.valid_until else intervals.valid_from end
                as edge_at
            {%- for side in sides %},
            max(case
                when intervals.side <> '{{ side }}' then null
                when ends.is_end = 1 then 0
                else intervals.content
            end) as {{ side }}_content
            {%- endfor %}
        from intervals
        cross join (select 0 as is_end union all select 1 as is_end) as ends
        group by
            intervals.{{ key }},
            case when ends.is_end = 1 then intervals.valid_until else intervals.valid_from end

    ),

    numbered as (

        select
            edges.*
            {%- for side in sides %},
            count({{ side }}_content) over (
                partition by {{ key }}
                order by edge_at asc nulls first
                rows between unbounded preceding and current row
            ) as {{ side }}_edge_number
            {%- endfor %}
        from edges

    ),

    -- A bound of one side leaves the content of the other.
    pieces as (

        select
            {{ key }},
            edge_at as starts_at,
            lead(edge_at) over (
                partition by {{ key }}
                order by edge_at asc nulls first
            ) as ends_at
            {%- for side in sides %},
            coalesce(
                max({{ side }}_content) over (
                    partition by {{ key }}, {{ side }}_edge_number
                ),
                0
            ) as {{ side }}_content
            {%- endfor %}
        from numbered

    )

    select {{ key }}, starts_at, ends_at
    from pieces
    where
        ends_at is not null
        and before_content <> now_content
{%- endmacro %}
