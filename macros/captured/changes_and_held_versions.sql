{% macro changes_and_held_versions(increment, changes, stream, key, attributes) -%}
    {%- set names = key + attributes -%}
    select
        {{ names | join(",\n        ") }},
        change_kind,
        is_deleted,
        is_tombstone,
        is_snapshot,
        source_committed_at,
        source_position,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id,
        false as was_held,
        false as is_incomplete,
        cast(null as varchar(512)) as version_key,
        cast(null as varchar(160)) as seen_to_position,
        cast(null as timestamp) as valid_from_at,
        cast(null as varchar(160)) as valid_from_position
    from {{ changes }}
    where
        {% if not increment.late -%}
        {{ new_rows(increment, stream) }}
        {%- else -%}
        (
            {{ new_rows(increment, stream) }}
            or (
                _commit_id <= {{ increment.reads[stream].to }}
                and {{ key_text(key) }} {{ increment.late }}
            )
        )
        {%- endif %}
    {%- if not increment.is_everything %}
    union all
    select
        {{ names | join(",\n        ") }},
        'held' as change_kind,
        is_deleted,
        false as is_tombstone,
        false as is_snapshot,
        valid_from_at as source_committed_at,
        cast(null as varchar(64)) as source_position,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id,
        true as was_held,
        is_incomplete,
        version_key,
        seen_to_position,
        valid_from_at,
        valid_from_position
    from {{ this }}
    where
        is_current
        {%- if increment.late %}
        and not {{ key_text(key) }} {{ increment.late }}
        {%- endif %}
        {%- if not increment.is_emptied %}
        and {{ key_text(key) }} in (
            select {{ key_text(key) }}
            from {{ changes }}
            where {{ new_rows(increment, stream) }}
        )
        {%- endif %}
    {%- endif %}
{%- endmacro %}

{#- An edit of these makes other rows: the next increment stops. -#}
{% macro captured_settings(stream) -%}
    {%- if not execute -%}
        {{ return({}) }}
    {%- endif -%}
    {%- set captured = captured_stream(stream).config.meta.ingest.captured -%}
    {%- set restarts = var("log_restarts").get(stream.split(".")[0]) -%}
    {{ return(dict(captured, log_restarts=restarts) if restarts else captured) }}
{%- endmacro %}

{#- A row's key as one text. -#}
{% macro key_text(key) -%}
    {%- for column in key -%}
        cast({{ column }} as varchar(128)){{ " || '-' || " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
