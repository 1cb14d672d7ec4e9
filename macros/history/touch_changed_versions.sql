{#- The history as it was when this model last read it is computed again from the records;
    as it is now it lies in the table. Only spans of time in which the two differ touch
    anything: a record that says nothing new touches no day. -#}
{% macro touch_changed_versions(
    increment, table, records, stream, key, attributes, versions_of
) -%}
    {%- set theirs = recorded_read(table, stream) -%}
    {%- if not theirs.is_recorded and asks_the_lake() and writes_rows()
        and not is_partial_build() and "deferred" not in increment.code -%}
        {{ stop(
            table ~ " has no read point in " ~ increment_tables().read_points,
            refresh_command(),
        ) }}
    {%- endif -%}
    {%- set read = read_of_stream(increment, stream, until=theirs) -%}
    {%- if not increment.is_everything and read.after < read.to -%}
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
            {%- do touch_days_in(increment, lake_rows(
                rows_in_spans(increment, spans, key, found[1]), [["2026-01-03"]]
            )) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- A row whose time no calendar of ours knows is in every span. The first day as a literal
    keeps the files of earlier days closed. -#}
{% macro rows_in_spans(increment, spans, key, first_day) -%}
    {%- set time_column = "kept." ~ increment.time_column -%}
    {%- set is_timeless = (
        "(" ~ time_column ~ " is null or not (" ~ is_dated(time_column) ~ "))"
    ) -%}
    select distinct {{ day_text(time_column) }} as day_text
    from {{ this }} as kept
    inner join ({{ spans }}) as spans
        on
            kept.{{ key }} = spans.{{ key }}
            and (
                {{ is_timeless }}
                or (
                    {{ time_column }} >= spans.starts_at
                    and {{ time_column }} < spans.ends_at
                )
            )
    {%- if first_day != "none" %}
    where
        {{ is_timeless }}
        or {{ time_column }} >= {{ midnight(calendar_day(first_day)) }}
    {%- endif %}
{%- endmacro %}

{#- Where two histories of the same things differ: time is cut wherever either has an edge,
    and each piece is looked up in both. -#}
{% macro changed_spans(before, now, key, attributes) -%}
    {%- set columns = ["valid_from_at"] + attributes -%}
    with

    earlier as (

        {{ held_versions(before, key, columns) }}

    ),

    later as (

        {{ held_versions(now, key, columns) }}

    ),

    edges as (

        {% for edge in ["held_from", "held_until"] -%}
        {% for side in ["earlier", "later"] -%}
        select {{ key }}, {{ edge }} as edge_at from {{ side }}
        {{ "union" if not loop.last }}
        {% endfor -%}
        {{ "union" if not loop.last }}
        {% endfor %}

    ),

    pieces as (

        select
            {{ key }},
            edge_at as starts_at,
            lead(edge_at) over (partition by {{ key }} order by edge_at) as ends_at
        from edges

    ),

    {% for side in ["earlier", "later"] -%}
    {{ side }}_pieces as (

        select
            pieces.{{ key }},
            pieces.starts_at,
            pieces.ends_at
            {%- for column in columns %},
            {{ side }}.{{ column }}
            {%- endfor %}
        from pieces
        left join {{ side }}
            on pieces.{{ key }} = {{ side }}.{{ key }}
            and pieces.starts_at >= {{ side }}.held_from
            and pieces.starts_at < {{ side }}.held_until
        where pieces.ends_at is not null

    ),

    {% endfor -%}
    only_earlier as (

        select * from earlier_pieces
        except
        select * from later_pieces

    ),

    only_later as (

        select * from later_pieces
        except
        select * from earlier_pieces

    )

    select {{ key }}, starts_at, ends_at from only_earlier
    union
    select {{ key }}, starts_at, ends_at from only_later
{%- endmacro %}

{#- The first version held from the beginning, the current one holds to the end. -#}
{% macro held_versions(query, key, columns) -%}
    select
        {{ key }}
        {%- for column in columns %},
        {{ column }}
        {%- endfor %},
        case
            when is_first_version then cast('0001-01-01 00:00:00' as timestamp)
            else valid_from_at
        end as held_from,
        coalesce(valid_to_at, cast('9999-12-31 00:00:00' as timestamp)) as held_until
    from ({{ query }}) as versions
{%- endmacro %}
