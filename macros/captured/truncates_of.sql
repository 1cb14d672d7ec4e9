{#- A query of the truncate records of a captured table: `source_position`, `source_committed_at`
    and the metadata of the record. None if the form has no such records and `truncates_when` is
    not set. Histories query bronze for them, since staging has only records with a row. The
    condition uses bronze's columns unchanged, so that files without such records are skipped. -#}
{% macro truncates_of(source_name, table_name) -%}
    {%- if not execute -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set stream = captured_stream(source_name ~ "." ~ table_name) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set condition = truncate_condition(captured) -%}
    {%- if condition is none -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set position = captured.position or "lsn" -%}
    {%- if position is not string -%}
        {%- for column in position if column not in stream.columns -%}
            {{ exceptions.raise_compiler_error(
                "source " ~ source_name ~ "." ~ table_name ~ ": config.meta.ingest.captured."
                ~ "position names " ~ column ~ ", but a TRUNCATE record has no row: "
                ~ "name lsn or binlog, or set truncates_when: 'false'"
            ) }}
        {%- endfor -%}
    {%- endif -%}
    {%- set query -%}
    select
        {{ source_position(stream) }} as source_position,
        {{ time_of_change(stream) }} as source_committed_at,
        cast(records._kafka_topic_id as varchar(64)) as _kafka_topic_id,
        records._kafka_partition,
        records._kafka_offset,
        cast(records._kafka_timestamp as timestamp) as _kafka_timestamp,
        cast(records._ingested_at as timestamp) as _ingested_at,
        records._commit_id
    from {{ bronze_table(source_name ~ "." ~ table_name) }} as records
    where {{ condition }}
    {%- endset -%}
    {{ return(query) }}
{%- endmacro %}
