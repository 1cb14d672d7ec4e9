{% macro grant_schema_usage() -%}
    {%- if execute and flags.WHICH in ["run", "build"] -%}
        {{ adapter.dispatch("grant_schema_usage")() }}
    {%- endif -%}
{%- endmacro %}

{% macro default__grant_schema_usage() -%}
{%- endmacro %}

{#- Without usage on its schema a readable table is not found. Covers the selected nodes only:
    other schemas may not exist. -#}
{% macro redshift__grant_schema_usage() -%}
    {%- set readers = {} -%}
    {%- for node in graph.nodes.values()
        if node.unique_id in selected_resources
        and node.config.materialized != "ephemeral"
        and node.config.get("grants", {}).get("select") -%}
        {%- do readers.update({node.schema: node.config.grants.select}) -%}
    {%- endfor -%}
    {%- for schema, grantees in readers.items() %}
        grant usage on schema {{ schema }}
        to {{ redshift__format_grantees(grantees) | join(", ") }};
    {%- endfor -%}
{%- endmacro %}
