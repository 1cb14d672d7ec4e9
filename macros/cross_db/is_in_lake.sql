{#- Whether a source's table exists; on Redshift, whether an external schema lists it. -#}
{% macro is_in_lake(source) -%}
    {{ return(
        rendered_branch() is not none or adapter.dispatch("is_in_lake")(source)
    ) }}
{%- endmacro %}

{% macro spark__is_in_lake(source) -%}
    {{ return(
        load_relation(
            api.Relation.create(schema=source.schema, identifier=source.identifier)
        ) is not none
    ) }}
{%- endmacro %}

{#- The adapter does not list external tables: they are queried once per invocation. -#}
{% macro redshift__is_in_lake(source) -%}
    {%- if not queries_lake() or rendered_branch() is not none -%}
        {{ return(true) }}
    {%- endif -%}
    {%- set memory = invocation_memory() -%}
    {%- set key = "external tables of " ~ source.schema -%}
    {%- if key not in memory -%}
        {%- set names = [] -%}
        {%- for row in run_query(
            "select tablename from svv_external_tables where schemaname = '"
            ~ source.schema ~ "'"
        ).rows -%}
            {%- do names.append(row[0]) -%}
        {%- endfor -%}
        {%- do memory.setdefault(key, names) -%}
    {%- endif -%}
    {{ return(source.identifier in memory[key]) }}
{%- endmacro %}
