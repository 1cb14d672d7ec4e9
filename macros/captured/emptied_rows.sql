{#- A truncate has no key: it ends each row that has a change before it. All truncates are told
    in each run, since a change that lies before one may come after it. -#}
{% macro truncates_until_now(increment, stream) -%}
    {%- if not execute -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set truncates = truncates_of(*stream.split(".")) -%}
    {%- if not truncates -%}
        {{ return(none) }}
    {%- endif -%}
    select *
    from (
        {{ truncates }}
    ) as records
    where coalesce(_commit_id, 0) <= {{ read_of_stream(increment, stream).to }}
{%- endmacro %}

{% macro emptied_rows(truncates, key, attributes) -%}
{%- set keys = key | join(", ") -%}
{%- set columns = (key + attributes) | join(",\n        ") -%}
truncates as (

    {{ truncates }}

),

first_changes as (

    select
        {{ keys }},
        min(order_position) as first_position
    from ordered
    group by {{ keys }}

),

emptied as (

    select
        {{ columns }},
        change_kind,
        is_deleted,
        is_tombstone,
        is_snapshot,
        changed_at,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id,
        was_held,
        is_incomplete,
        version_key,
        seen_to_position,
        valid_from_at,
        valid_from_position,
        order_position
    from ordered
    union all
    select
        {%- for column in key %}
        first_changes.{{ column }},
        {%- endfor %}
        {%- for attribute in attributes %}
        null as {{ attribute }},
        {%- endfor %}
        'truncate' as change_kind,
        true as is_deleted,
        false as is_tombstone,
        false as is_snapshot,
        truncates.source_committed_at as changed_at,
        truncates._kafka_topic_id,
        truncates._kafka_partition,
        truncates._kafka_offset,
        truncates._kafka_timestamp,
        truncates._ingested_at,
        truncates._commit_id,
        false as was_held,
        false as is_incomplete,
        null as version_key,
        null as seen_to_position,
        null as valid_from_at,
        null as valid_from_position,
        truncates.source_position || 'c' as order_position
    from first_changes
    inner join truncates
        on first_changes.first_position < truncates.source_position || 'c'

),
{% endmacro %}
