{#- The input of an increment: the new changes of each row and its current version. -#}
{% macro new_changes_and_current_versions(
    increment, changes, stream, key, attributes, history=this
) -%}
    {%- set names = (key + attributes) | join(",\n        ") -%}
    -- The new changes, and all changes of the keys to rebuild.
    select
        {{ names }},
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
        false as _is_current_version,
        false as is_incomplete,
        cast(null as varchar(512)) as version_key,
        cast(null as timestamp) as valid_from_at,
        cast(null as varchar(160)) as valid_from_position,
        cast(null as varchar(160)) as seen_to_position,
        cast(null as timestamp) as seen_to_at
    from {{ changes }}
    where
        {{ has_key_and_position(key) }}
        {%- if not increment.keys_to_rebuild %}
        and {{ new_rows(increment, stream) }}
        {%- else %}
        and (
            {{ new_rows(increment, stream) }}
            or (
                _commit_id <= {{ increment.reads[stream].to }}
                and {{ key_text(key) }} {{ increment.keys_to_rebuild }}
            )
        )
        {%- endif %}
    {%- if not increment.is_full_refresh %}
    union all
    -- The current versions of the other rows that have new changes.
    select
        {{ names }},
        'current' as change_kind,
        is_deleted,
        false as is_tombstone,
        false as is_snapshot,
        seen_to_at as source_committed_at,
        cast(null as varchar(64)) as source_position,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id,
        true as _is_current_version,
        is_incomplete,
        version_key,
        valid_from_at,
        valid_from_position,
        seen_to_position,
        seen_to_at
    from {{ history }}
    where
        is_current
        {%- if increment.keys_to_rebuild %}
        and not {{ key_text(key) }} {{ increment.keys_to_rebuild }}
        {%- endif %}
        {%- if not increment.is_truncated %}
        and {{ has_new_changes(increment, changes, stream, key) | indent(8) }}
        {%- endif %}
    {%- endif %}
{%- endmacro %}

{#- A change without a key has no row, and one without a position cannot be ordered: histories
    exclude both. -#}
{% macro has_key_and_position(key) -%}
    (source_position is not null or is_tombstone)
    {%- for column in key %} and {{ column }} is not null{% endfor %}
{%- endmacro %}

{#- Whether the row of a version has new changes. Compares the key columns: a text of the key
    would be computed for all rows. -#}
{% macro has_new_changes(increment, changes, stream, key) -%}
({{ key | join(", ") }}) in (
    select {{ key | join(", ") }}
    from {{ changes }}
    where
        {{ new_rows(increment, stream) }}
        and {{ has_key_and_position(key) }}
)
{%- endmacro %}
