{#- The dbt source of a captured table, or an error with what to declare. -#}
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
            {%- do raise_captured_error(
                source, option ~ " is not one of its keys: " ~ options_of_captured() | join(", ")
                ~ "; track and ignore_null_updates are arguments of change_history"
            ) -%}
        {%- endfor -%}
        {%- if captured.form not in ["flattened", "envelope", "rows"] -%}
            {%- do raise_captured_error(
                source, "form is " ~ captured.form ~ ": flattened, envelope or rows"
            ) -%}
        {%- elif captured.form == "rows" and captured.get("position", "lsn") is string -%}
            {%- do raise_captured_error(
                source, "form rows needs as position a list of columns, like [last_update]"
            ) -%}
        {%- endif -%}
        {{ return(source) }}
    {%- endfor -%}
    {{ exceptions.raise_compiler_error(
        "no dbt source is named " ~ name ~ ": name it like moma.artists"
    ) }}
{%- endmacro %}

{#- The database whose log has the changes of a stream: its `database` setting or its source
    name. -#}
{% macro captured_database(stream) -%}
    {{ return(stream.config.meta.ingest.captured.get("database") or stream.source_name) }}
{%- endmacro %}

{#- The keys of `config.meta.ingest.captured`, a list. `spark-ingest plan` reports all mistakes at
    once; dbt must not build with one either. -#}
{% macro options_of_captured() -%}
    {{ return(
        [
            "form", "key", "position", "deletes_when", "truncates_when", "columns", "table",
            "database",
        ]
    ) }}
{%- endmacro %}

{#- The settings of a history. A change would produce other rows: the next increment raises an
    error. -#}
{% macro captured_settings(stream) -%}
    {%- if not execute -%}
        {{ return({}) }}
    {%- endif -%}
    {%- set source = captured_stream(stream) -%}
    {%- set captured = source.config.meta.ingest.captured -%}
    {%- set restarts = var("log_restarts").get(captured_database(source)) -%}
    {{ return(dict(captured, log_restarts=restarts) if restarts else captured) }}
{%- endmacro %}

{#- The columns of the captured table for states and histories, with their bronze types: the
    source's columns or the fields of the envelope's row. -#}
{% macro columns_of_values(stream) -%}
    {%- set captured = stream.config.meta.ingest.captured -%}
    {%- set described = {} -%}
    {%- if captured.form == "envelope" -%}
        {%- if "after" not in stream.columns -%}
            {%- do raise_captured_error(
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
        {%- do raise_captured_error(stream, "columns names " ~ name ~ ", which it does not describe") -%}
    {%- endfor -%}
    {%- for name in captured.key if name not in columns -%}
        {%- do raise_captured_error(stream, "key names " ~ name ~ ", which is not one of its columns") -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro %}

{#- The fields of a struct type by name, with their types. -#}
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

{#- The kind of a text column by its type in the YAML of a history, as far as it affects rows;
    empty for other types. -#}
{% macro kind_of_text(node, column) -%}
    {%- set type = (node.columns.get(column) or {}).get("data_type") or "varchar" -%}
    {%- if "char" not in type -%}
        {{ return("") }}
    {%- endif -%}
    {%- set length = modules.re.findall("char\\((\\d+)\\)", type) -%}
    {{ return(
        "long text" if length and length[0] | int >= left_out_value() | length else "text"
    ) }}
{%- endmacro %}

{#- Debezium's placeholder for a value that is not in the log, an SQL literal. -#}
{% macro left_out_value() -%}
    {{ return("'__debezium_unavailable_value'") }}
{%- endmacro %}

{#- Raises an error for a mistake in `config.meta.ingest.captured`. -#}
{% macro raise_captured_error(stream, mistake) -%}
    {{ exceptions.raise_compiler_error(
        "source " ~ stream.source_name ~ "." ~ stream.name ~ " (" ~ stream.original_file_path
        ~ "): config.meta.ingest.captured: " ~ mistake
    ) }}
{%- endmacro %}
