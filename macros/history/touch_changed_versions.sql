{#- The history as it was when this model last read it is computed again from the records;
    as it is now it lies in the table. Only spans of time in which the two differ touch
    anything: a record that says nothing new touches no day. -#}
{% macro touch_changed_versions(
    increment, table, records, stream, key, attributes, versions_of
) -%}
    {%- set read = read_of_stream(
        increment, stream, until=recorded_read_point(table, stream)
    ) -%}
    {%- if not increment.is_everything and read.after < read.to -%}
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
        {%- set first = run_query(
            "select cast(cast(min(starts_at) as date) as varchar(10)) as first_date"
            ~ " from (" ~ spans ~ ") as spans"
        ).rows[0][0] -%}
        {%- if first is not none -%}
            {#- The literal keeps the files of earlier days closed. -#}
            {%- set time_column = "kept." ~ increment.time_column -%}
            {%- do touch_days_in(increment, run_query(
                "select distinct cast(cast(" ~ time_column ~ " as date) as varchar(10))"
                ~ " as touched_date"
                ~ " from " ~ this ~ " as kept"
                ~ " inner join (" ~ spans ~ ") as spans"
                ~ " on kept." ~ key ~ " = spans." ~ key
                ~ " and " ~ time_column ~ " >= spans.starts_at"
                ~ " and " ~ time_column ~ " < spans.ends_at"
                ~ " where " ~ time_column ~ " >= " ~ midnight(calendar_day(first))
            ).rows) -%}
        {%- endif -%}
    {%- endif -%}
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
