{#- Both are small: a model's rows are replaced, not added to. -#}
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

{% macro create_increment_tables() -%}
    {%- if execute and target.name != "lint" -%}
        {%- set tables = increment_tables() -%}
        {%- do run_query("create schema if not exists " ~ tables.read_points.schema) -%}
        {%- do run_query(create_small_table(tables.read_points, {
            "model_name": "varchar(256)",
            "source_name": "varchar(256)",
            "read_to": "bigint",
            "increment_id": "bigint",
            "settings": "varchar(4096)",
            "recorded_at": "timestamp",
        }, "model_name")) -%}
        {%- do run_query(create_small_table(tables.touched_days, {
            "model_name": "varchar(256)",
            "touched_date": "date",
            "is_onwards": "boolean",
            "increment_id": "bigint",
        }, "model_name")) -%}
    {%- endif -%}
{%- endmacro %}

{#- `dbt compile` and `dbt docs generate` make no tables: before the first build there are
    none. -#}
{% macro are_increments_recorded() -%}
    {%- if rendered_branch() is not none -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- if "are increments recorded" not in memory -%}
        {%- do memory.update({"are increments recorded": adapter.check_schema_exists(
            target.database, increment_tables().read_points.schema
        )}) -%}
    {%- endif -%}
    {{ return(memory["are increments recorded"]) }}
{%- endmacro %}
