{#- The condition for a record that deletes its row: that of its form, `deletes_when`, or none.
    Columns are qualified by their relation: Redshift resolves fields of a struct by that name
    only. -#}
{% macro delete_condition(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set conditions = [] -%}
    {%- if captured.form == "envelope" -%}
        {%- do conditions.append("records.op = 'd'") -%}
    {%- elif captured.form == "flattened"
        and ("__deleted" in stream.columns or not captured.deletes_when) -%}
        {%- do conditions.append("records.__deleted = 'true'") -%}
    {%- endif -%}
    {%- if captured.deletes_when -%}
        {%- do conditions.append("(" ~ captured.deletes_when ~ ")") -%}
    {%- endif -%}
    {{ return(conditions | join(" or ") or none) }}
{%- endmacro %}

{#- The condition for a record of an incremental snapshot, which is read in chunks, each at its
    own position, and may miss rows. None if the connector does not emit the field. -#}
{% macro chunk_condition(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set snapshot = none -%}
    {%- if captured.form == "envelope" -%}
        {%- if "source" in stream.columns
            and "snapshot" in struct_fields(stream.columns["source"].data_type) -%}
            {%- set snapshot = source_field(captured, "snapshot") -%}
        {%- endif -%}
    {%- elif "__source_snapshot" in stream.columns -%}
        {%- set snapshot = source_field(captured, "snapshot") -%}
    {%- endif -%}
    {{ return(snapshot ~ " = 'incremental'" if snapshot else none) }}
{%- endmacro %}

{#- The condition for a truncate record; none if there are none. -#}
{% macro truncate_condition(captured) -%}
    {%- set of_form = "records.op = 't'" if captured.form == "envelope" else none -%}
    {{ return(captured.get("truncates_when") or of_form) }}
{%- endmacro %}

{#- A field of the connector's source metadata. -#}
{% macro source_field(captured, field) -%}
    {%- if captured.form == "envelope" -%}
        {%- set type = {"lsn": "bigint", "pos": "bigint", "ts_ms": "bigint", "row": "int"} -%}
        {{ return(nested_field("records", "source", field, type.get(field, "string"))) }}
    {%- endif -%}
    {{ return("records.__" ~ ("" if field == "lsn" else "source_") ~ field) }}
{%- endmacro %}

{#- The value of a column in a record. For a deleted row the envelope has the `before` value: the
    whole row or only the key, as the database logs it. -#}
{% macro value_of_row(captured, column, type) -%}
    {%- if captured.form != "envelope" -%}
        {{ return("records." ~ column) }}
    {%- endif -%}
    {%- set parts = [] -%}
    {%- for row in ["before", "after"] -%}
        {%- if type.startswith("array<") -%}
            {%- do parts.append(array_text("records." ~ row ~ "." ~ column)) -%}
        {%- else -%}
            {%- do parts.append(nested_field("records", row, column, type)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(
        "case when records.op = 'd' then " ~ parts[0] ~ " else " ~ parts[1] ~ " end"
    ) }}
{%- endmacro %}

{#- The commit time of a change. Records of form `rows` have only a time of their own; a tombstone
    has none from the database, and Kafka's is the closest. -#}
{% macro time_of_change(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set parts = [] -%}
    {%- if captured.form != "rows" -%}
        {%- do parts.append(timestamp_from_millis(source_field(captured, "ts_ms"))) -%}
    {%- else -%}
        {%- set types = columns_of_values(stream) -%}
        {%- for column in captured.position if types[column] == "timestamp" -%}
            {%- do parts.append("cast(records." ~ column ~ " as timestamp)") -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do parts.append("cast(records._kafka_timestamp as timestamp)") -%}
    {%- if parts | length == 1 -%}
        {{ return(parts[0]) }}
    {%- endif -%}
    {{ return(
        "coalesce(\n            " ~ parts | join(",\n            ") ~ "\n        )"
    ) }}
{%- endmacro %}

{#- The position of a change in the log, as a text of fixed length that sorts in log order. Binlog
    files are numbered after the last dot of their names. -#}
{% macro source_position(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set position = captured.position or "lsn" -%}
    {%- set position_in_log -%}
    {%- if position == "lsn" -%}
        cast(lpad({{ log_sequence_number(stream) }}, 20, '0') as varchar(64))
    {%- elif position == "binlog" -%}
        {%- set file = source_field(captured, "file") %}
        cast(
            lpad(
                split_part(
                    {{ file }},
                    '.',
                    1 + length({{ file }})
                    - length(replace({{ file }}, '.', ''))
                ),
                10,
                '0'
            )
            || '-' || lpad(cast({{ source_field(captured, "pos") }} as varchar(20)), 20, '0')
            || '-' || lpad(cast({{ source_field(captured, "row") }} as varchar(11)), 11, '0')
            as varchar(64)
        )
    {%- else -%}
        cast(
            {%- for column in position %}
            {{ number_text(position_number(stream, column)) }}
            {{- " || '-' ||" if not loop.last }}
            {%- endfor %}
            as varchar(64)
        )
    {%- endif -%}
    {%- endset -%}
    {{ return(position_across_restarts(
        captured_database(stream),
        position_in_log,
        "cast(records._kafka_timestamp as timestamp)",
    )) }}
{%- endmacro %}

{#- The LSN of a record in PostgreSQL's log, as text. A chunk of an incremental snapshot has none:
    its position is the last LSN that the connector had processed, the second number of
    `sequence`. -#}
{% macro log_sequence_number(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set number = "cast(" ~ source_field(captured, "lsn") ~ " as varchar(20))" -%}
    {%- set has_sequence = (
        "source" in stream.columns
        and "sequence" in struct_fields(stream.columns["source"].data_type)
    ) if captured.form == "envelope" else "__source_sequence" in stream.columns -%}
    {%- if not has_sequence -%}
        {{ return(number) }}
    {%- endif -%}
    {%- set sequence = source_field(captured, "sequence") -%}
    {{ return(
        "coalesce(" ~ number ~ ", nullif(split_part(" ~ sequence ~ ", '\"', 4), ''))"
    ) }}
{%- endmacro %}

{#- An integer as a text that sorts numerically: a hyphen sorts before all digits, and is followed
    by the distance from the smallest bigint. -#}
{% macro number_text(number) -%}
    case
                when {{ number }} < 0 then '-' || lpad(
                    cast(least({{ number }}, -1) + 9223372036854775807 as varchar(20)), 19, '0'
                )
                else lpad(cast({{ number }} as varchar(20)), 20, '0')
            end
{%- endmacro %}

{#- A column of the row or the record as an integer of the same order. -#}
{% macro position_number(stream, column) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set row = columns_of_values(stream) -%}
    {%- set type = row.get(column) or stream.columns[column].data_type -%}
    {%- set value = value_of_row(captured, column, type) if column in row
        else "records." ~ column -%}
    {%- if type == "timestamp" -%}
        {{ return(epoch_micros("cast(" ~ value ~ " as timestamp)")) }}
    {%- elif type in ["int", "bigint"] -%}
        {{ return(value) }}
    {%- endif -%}
    {{ exceptions.raise_compiler_error(
        "source " ~ stream.source_name ~ "." ~ stream.name ~ ": config.meta.ingest.captured."
        ~ "position names " ~ column ~ ", which is a " ~ type ~ ": name an int, a bigint or a "
        ~ "timestamp"
    ) }}
{%- endmacro %}
