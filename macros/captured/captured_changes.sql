{% macro captured_changes(source_name, table_name) -%}
    {%- set records = source(source_name, table_name) -%}
    {%- if execute -%}
        {{ changes_of_records(
            records, captured_stream(source_name ~ "." ~ table_name)
        ) }}
    {%- endif -%}
{%- endmacro %}

{#- A query of changes from records, a part of `captured_changes`. -#}
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
        -- A tombstone says no more than its key.
        coalesce(
            {{ value_of_row(captured, column, type) }},
            {{ nested_field("records", "_key", column, type) }}
        ) as {{ name_beside_change(column) }},
        {% else -%}
        {%- set value = value_of_row(captured, column, type) -%}
        {%- set name = name_beside_change(column) -%}
        {#- A column called `order` has that name by itself; behind `as` no linter reads it. -#}
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

{#- A column of the database's table that is called like one of those above: `row_<name>`. -#}
{% macro name_beside_change(column) -%}
    {%- set of_change = [
        "record_key", "change_kind", "is_deleted", "is_tombstone", "is_snapshot",
        "source_position", "source_committed_at",
    ] -%}
    {{ return("row_" ~ column if column | lower in of_change else column) }}
{%- endmacro %}

{#- The columns of the database's table that state and history may have, with their types in
    bronze: the source's own, or the fields of an envelope's row. -#}
{% macro columns_of_values(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set described = {} -%}
    {%- if captured.form == "envelope" -%}
        {%- if "after" not in stream.columns -%}
            {%- do refuse_captured(
                stream, "form is envelope, and no column after is described, a struct"
            ) -%}
        {%- endif -%}
        {%- do described.update(struct_fields(stream.columns["after"].data_type)) -%}
    {%- else -%}
        {%- for column in stream.columns.values() if not column.name.startswith("_") -%}
            {%- do described.update({column.name: column.data_type}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set choice = captured.get("columns") -%}
    {%- set named = (choice.all_but if choice is mapping else choice) or [] -%}
    {%- set columns = {} -%}
    {%- for column, type in described.items()
        if choice is none or (column in named) != (choice is mapping) -%}
        {%- do columns.update({column: type}) -%}
    {%- endfor -%}
    {%- for name in named if name not in described -%}
        {%- do refuse_captured(stream, "columns names " ~ name ~ ", which it does not describe") -%}
    {%- endfor -%}
    {%- for name in captured.key if name not in columns -%}
        {%- do refuse_captured(stream, "key names " ~ name ~ ", which is none of its columns") -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}

{#- By name the type of each field of a struct, from the SQL of its type. -#}
{% macro struct_fields(type) -%}
    {%- set fields = {} -%}
    {%- set seen = namespace(depth=0, text="") -%}
    {%- for letter in type[7:-1] ~ "," -%}
        {%- set seen.depth = seen.depth + (letter in "<(") - (letter in ">)") -%}
        {%- if letter == "," and seen.depth == 0 -%}
            {%- set name, _, field_type = seen.text.strip().partition(":") -%}
            {%- do fields.update({name: field_type.strip()}) -%}
            {%- set seen.text = "" -%}
        {%- else -%}
            {%- set seen.text = seen.text ~ letter -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(fields) }}
{%- endmacro %}

{#- The dbt source of a captured table, or an error that says what to declare. -#}
{% macro captured_stream(name) -%}
    {%- for source in graph.sources.values()
        if source.source_name ~ "." ~ source.name == name -%}
        {%- if "captured" not in source.config.meta.get("ingest", {}) -%}
            {{ exceptions.raise_compiler_error(
                "source " ~ name ~ " is not captured from a database: declare "
                ~ "config.meta.ingest.captured in " ~ source.original_file_path
            ) }}
        {%- endif -%}
        {%- set captured = source.config.meta.ingest.captured -%}
        {%- for option in captured if option not in options_of_captured() -%}
            {%- do refuse_captured(
                source, option ~ " is none of its keys: " ~ options_of_captured() | join(", ")
                ~ "; track and ignore_null_updates are arguments of change_history"
            ) -%}
        {%- endfor -%}
        {%- if captured.form not in ["flattened", "envelope", "rows"] -%}
            {%- do refuse_captured(
                source, "form is " ~ captured.form ~ ": flattened, envelope or rows"
            ) -%}
        {%- elif captured.form == "rows" and captured.get("position", "lsn") is string -%}
            {%- do refuse_captured(
                source, "form rows needs as position a list of columns, like [last_update]"
            ) -%}
        {%- endif -%}
        {{ return(source) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no dbt source is named " ~ name ~ ": name it like moma.artists"
    ) }}
{%- endmacro %}

{#- Whose log has the changes of a stream: that of its source, or the one that it names. -#}
{% macro captured_database(stream) -%}
    {{ return(stream.config.meta.ingest.captured.get("database") or stream.source_name) }}
{%- endmacro %}

{#- The keys of `config.meta.ingest.captured`, a list. `spark-ingest plan` tells all mistakes at
    once; dbt alone must not build on one. -#}
{% macro options_of_captured() -%}
    {{ return(
        [
            "form", "key", "position", "deletes_when", "truncates_when", "columns", "table",
            "database",
        ]
    ) }}
{%- endmacro %}

{#- Stops with a mistake in `config.meta.ingest.captured`. -#}
{% macro refuse_captured(stream, mistake) -%}
    {{ exceptions.raise_compiler_error(
        "source " ~ stream.source_name ~ "." ~ stream.name ~ " (" ~ stream.original_file_path
        ~ "): config.meta.ingest.captured: " ~ mistake
    ) }}
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
