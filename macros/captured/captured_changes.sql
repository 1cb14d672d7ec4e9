{% macro captured_changes(source_name, table_name) -%}
    {%- set records = source(source_name, table_name) -%}
    {%- if execute -%}
        {{ changes_of_records(
            records, captured_stream(source_name ~ "." ~ table_name)
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- The query of `captured_changes`. -#}
{% macro changes_of_records(records, stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set operation = {"flattened": "records.__op", "envelope": "records.op"}
        .get(captured.form) -%}
    {%- set kinds = {"r": "snapshot", "c": "create", "u": "update", "d": "delete"} -%}
    {%- set chunk = chunk_condition(stream) -%}
    {%- set deletes = delete_condition(stream) -%}
    {%- set truncates = truncate_condition(captured) -%}
    select
        cast(
            records._kafka_topic_id
            || '-' || cast(records._kafka_partition as varchar(11))
            || '-' || cast(records._kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        {% for column, type in columns_of_values(stream).items() -%}
        {%- if column in captured.key -%}
        -- A tombstone has only a key.
        coalesce(
            {{ value_of_row(captured, column, type) }},
            {{ nested_field("records", "_key", column, type) }}
        ) as {{ name_beside_change(column) }},
        {% else -%}
        {%- set value = value_of_row(captured, column, type) -%}
        {%- set name = name_beside_change(column) -%}
        {#- A column named `order` needs no alias; linters cannot parse it after `as`. -#}
        {{ value if value == "records." ~ name else value ~ " as " ~ name }},
        {% endif -%}
        {%- endfor -%}
        cast(
            case
                when records._is_tombstone then 'tombstone'
                {%- if chunk %}
                when {{ operation }} = 'r' and {{ chunk }} then 'snapshot chunk'
                {%- endif %}
                {%- if operation %}
                {%- for letter, kind in kinds.items() %}
                when {{ operation }} = '{{ letter }}' then '{{ kind }}'
                {%- endfor %}
                else {{ operation }}
                {%- else %}
                else 'update'
                {%- endif %}
            end as varchar(16)
        ) as change_kind,
        {%- if deletes %}
        coalesce(
            records._is_tombstone
            or {{ deletes }}, false
        ) as is_deleted,
        {%- else %}
        records._is_tombstone as is_deleted,
        {%- endif %}
        records._is_tombstone as is_tombstone,
        {{ "coalesce(" ~ operation ~ " = 'r', false)" if operation else "false" }}
            as is_snapshot,
        {{ source_position(stream) }} as source_position,
        {{ time_of_change(stream) }} as source_committed_at,
        cast(records._kafka_topic_id as varchar(64)) as _kafka_topic_id,
        records._kafka_partition,
        records._kafka_offset,
        cast(records._kafka_timestamp as timestamp) as _kafka_timestamp,
        cast(records._ingested_at as timestamp) as _ingested_at,
        records._commit_id
    from {{ records }} as records
    {%- if truncates %}
    where not coalesce({{ truncates }}, false)
    {%- endif %}
{%- endmacro %}

{#- Renames a column of the table that has the name of one above to `row_<name>`. -#}
{% macro name_beside_change(column) -%}
    {%- set of_change = [
        "record_key", "change_kind", "is_deleted", "is_tombstone", "is_snapshot",
        "source_position", "source_committed_at",
    ] -%}
    {{ return("row_" ~ column if column | lower in of_change else column) }}
{%- endmacro %}

{#- The last columns of each staging model of a captured table. -#}
{% macro columns_of_change() -%}
    -- flags
        change_kind,
        is_deleted,
        is_tombstone,
        is_snapshot,

        -- times
        source_committed_at,

        -- metadata
        source_position,
        _kafka_topic_id,
        _kafka_partition,
        _kafka_offset,
        _kafka_timestamp,
        _ingested_at,
        _commit_id
{%- endmacro %}
