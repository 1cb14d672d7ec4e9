{% macro captured_changes(source_name, table_name) -%}
    {%- set records = source(source_name, table_name) -%}
    {%- if execute -%}
        {%- set stream = captured_stream(source_name ~ "." ~ table_name) -%}
        {%- set captured = stream.config.meta.ingest.captured -%}
        {%- for option in ["truncates_when", "columns"] if option in captured -%}
            {{ exceptions.raise_compiler_error(
                "source " ~ source_name ~ "." ~ table_name ~ ": no model reads "
                ~ "config.meta.ingest.captured." ~ option ~ " yet: leave it out"
            ) }}
        {%- endfor -%}
        {%- if captured.form != "flattened" -%}
            {{ exceptions.raise_compiler_error(
                "source " ~ source_name ~ "." ~ table_name ~ ": captured_changes reads the form "
                ~ "flattened, not " ~ captured.form
            ) }}
        {%- endif -%}
        {{ changes_of_records(
            records, columns_of_values(stream), captured
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- A column is named by its relation: Redshift finds the fields of a struct by that name
    alone. -#}
{% macro changes_of_records(records, columns, captured) -%}
    select
        cast(
            records._kafka_topic_id
            || '-' || cast(records._kafka_partition as varchar(11))
            || '-' || cast(records._kafka_offset as varchar(20)) as varchar(64)
        ) as record_key,
        {% for column, type in columns.items() -%}
        {%- if column in captured.key -%}
        -- A tombstone says no more than its key.
        coalesce(
            records.{{ column }}, {{ nested_field("records", "_key", column, type) }}
        ) as {{ column }},
        {% else -%}
        records.{{ column }},
        {% endif -%}
        {%- endfor -%}
        cast(
            case
                when records._is_tombstone then 'tombstone'
                when records.__op = 'r' then 'snapshot'
                when records.__op = 'c' then 'create'
                when records.__op = 'u' then 'update'
                when records.__op = 'd' then 'delete'
                else records.__op
            end as varchar(16)
        ) as change_kind,
        coalesce(
            records._is_tombstone
            or {{ captured.deletes_when or "records.__deleted = 'true'" }}, false
        ) as is_deleted,
        records._is_tombstone as is_tombstone,
        coalesce(records.__op = 'r', false) as is_snapshot,
        {{ source_position(captured.position or "lsn") }} as source_position,
        -- A tombstone has no time of the database; Kafka's is the nearest.
        coalesce(
            {{ timestamp_from_millis("records.__source_ts_ms") }},
            cast(records._kafka_timestamp as timestamp)
        ) as source_committed_at,
        cast(records._kafka_topic_id as varchar(64)) as _kafka_topic_id,
        records._kafka_partition,
        records._kafka_offset,
        cast(records._kafka_timestamp as timestamp) as _kafka_timestamp,
        cast(records._ingested_at as timestamp) as _ingested_at,
        records._commit_id
    from {{ records }} as records
{%- endmacro %}

{#- The columns that come from the database, with their types in bronze. -#}
{% macro columns_of_values(stream) -%}
    {%- set columns = {} -%}
    {%- for column in stream.columns.values() if not column.name.startswith("_") -%}
        {%- do columns.update({column.name: column.data_type}) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}

{% macro captured_stream(name) -%}
    {%- for source in graph.sources.values()
        if source.source_name ~ "." ~ source.name == name -%}
        {%- if "captured" not in source.config.meta.get("ingest", {}) -%}
            {{ exceptions.raise_compiler_error(
                "source " ~ name ~ " is not captured from a database: declare "
                ~ "config.meta.ingest.captured in " ~ source.original_file_path
            ) }}
        {%- endif -%}
        {{ return(source) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no dbt source is named " ~ name ~ ": name it like moma.artists"
    ) }}
{%- endmacro %}

{#- As texts of one length, so that they compare as the log runs. A binlog's files are counted
    behind the last dot of their names. -#}
{% macro source_position(position) -%}
    {%- if position == "lsn" -%}
        cast(lpad(cast(records.__lsn as varchar(20)), 20, '0') as varchar(64))
    {%- elif position == "binlog" -%}
        cast(
            lpad(regexp_replace(records.__source_file, '^.*[.]', ''), 10, '0')
            || '-' || lpad(cast(records.__source_pos as varchar(20)), 20, '0')
            || '-' || lpad(cast(records.__source_row as varchar(11)), 11, '0')
            as varchar(64)
        )
    {%- else -%}
        cast(
            {%- for column in position %}
            lpad(cast(records.{{ column }} as varchar(20)), 20, '0')
            {{- " || '-' ||" if not loop.last }}
            {%- endfor %}
            as varchar(64)
        )
    {%- endif -%}
{%- endmacro %}

{#- What each staging model of a captured table ends with. -#}
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
