{#- The relations of these two tables. Both are small. A column is added at the end: an older lake
    gets it at its next run. -#}
{% macro increment_tables() -%}
    {{ return({
        "read_points": api.Relation.create(
            schema=generate_schema_name("state", none), identifier="read_points"
        ),
        "touched_days": api.Relation.create(
            schema=generate_schema_name("state", none), identifier="touched_days"
        ),
    }) }}
{%- endmacro %}

{#- The columns of the two tables, with their types. -#}
{% macro increment_columns() -%}
    {{ return({
        "read_points": {
            "model_name": "varchar(256)",
            "source_name": "varchar(256)",
            "read_to": "bigint",
            "increment_id": "bigint",
            "settings": "varchar(4096)",
            "recorded_at": "timestamp",
            "table_uuid": "varchar(64)",
            "code": "varchar(16000)",
            "unfinished": "varchar(16000)",
            "table_since": "bigint",
        },
        "touched_days": {
            "model_name": "varchar(256)",
            "touched_date": "date",
            "is_onwards": "boolean",
            "increment_id": "bigint",
            "run_id": "varchar(64)",
        },
    }) }}
{%- endmacro %}

{% macro create_increment_tables() -%}
    {%- if execute and target.name != "lint" -%}
        {%- set tables = increment_tables() -%}
        {%- do run_query("create schema if not exists " ~ tables.read_points.schema) -%}
        {%- for name, columns in increment_columns().items() -%}
            {%- do run_query(create_small_table(tables[name], columns, "model_name")) -%}
        {%- endfor -%}
        {%- do create_runs_table() -%}
        {#- On Redshift dbt asks for columns in a transaction, and takes back what follows in it
            when the hook has ended: tables are made before that. -#}
        {%- for name, columns in increment_columns().items() -%}
            {%- set there = adapter.get_columns_in_relation(tables[name])
                | map(attribute="name") | list -%}
            {%- for column, type in columns.items() if column not in there -%}
                {%- do run_query(in_own_transaction(
                    tables[name],
                    "alter table " ~ tables[name] ~ " add column " ~ column ~ " " ~ type,
                )) -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- `dbt compile` and `dbt docs generate` make no tables and no columns: before the first
    build there are none. -#}
{% macro are_increments_recorded() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- if "are increments recorded" not in memory -%}
        {%- set table = increment_tables().read_points -%}
        {%- do memory.update({"are increments recorded": (
            adapter.check_schema_exists(target.database, table.schema)
            and "table_since" in (
                adapter.get_columns_in_relation(table) | map(attribute="name") | list
            )
        )}) -%}
    {%- endif -%}
    {{ return(memory["are increments recorded"]) }}
{%- endmacro %}
