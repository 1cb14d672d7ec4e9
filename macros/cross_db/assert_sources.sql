{% macro assert_sources() -%}
    {%- if execute -%}
        {{ adapter.dispatch("assert_sources")() }}
    {%- endif -%}
{%- endmacro %}

{#- Spectrum's tables are in no list that the adapter reads. -#}
{% macro default__assert_sources() -%}
{%- endmacro %}

{#- Without this each model and test fails on its own, and PySpark prints a stack for each. -#}
{% macro spark__assert_sources() -%}
    {%- set missing = [] -%}
    {%- for source in graph.sources.values() -%}
        {%- set needed_by = [] -%}
        {%- for resource in selected_resources -%}
            {%- set node = graph.nodes.get(resource, {}) -%}
            {%- if source.unique_id in [resource] + node.get("depends_on", {}).get("nodes", []) -%}
                {%- do needed_by.append(resource) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if needed_by and not load_relation(
            api.Relation.create(schema=source.schema, identifier=source.identifier)
        ) -%}
            {%- do missing.append(source.schema ~ "." ~ source.identifier) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if missing -%}
        {{ exceptions.raise_compiler_error(
            missing | join(", ") ~ " not found in the lake: run `spark-ingest create`"
        ) }}
    {%- endif -%}
{%- endmacro %}
