{% macro create_state_tables() -%}
    {%- if execute and target.name != "lint" -%}
        {%- set tables = increment_tables() -%}
        {%- do run_query("create schema if not exists " ~ tables.read_points.schema) -%}
        {%- for name, columns in increment_columns().items() -%}
            {%- do run_query(create_small_table(tables[name], columns, "model_name")) -%}
        {%- endfor -%}
        {%- do create_runs_table() -%}
        {#- On Redshift dbt lists columns in a transaction that it rolls back when the hook ends:
            tables are created before that. -#}
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
        {%- do invocation_memory().update({"are increments recorded": true}) -%}
    {%- endif -%}
{%- endmacro %}
