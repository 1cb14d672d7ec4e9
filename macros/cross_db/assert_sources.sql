{% macro assert_sources() -%}
    {%- if execute -%}
        {{ adapter.dispatch("assert_sources")() }}
    {%- endif -%}
{%- endmacro %}

{% macro spark__assert_sources() -%}
    {{ assert_needed_sources("in the lake: run `spark-ingest create`") }}
{%- endmacro %}

{% macro redshift__assert_sources() -%}
    {{ assert_needed_sources(
        "through an external schema: run `dbt run-operation create_external_schema`, and "
        ~ "where that is there, `spark-ingest create`"
    ) }}
{%- endmacro %}

{#- The check of `assert_sources` for both engines. Without it each model and test fails
    separately, with a stack trace of PySpark. Sources that ingest does not write are not
    checked. -#}
{% macro assert_needed_sources(fix) -%}
    {%- set missing = [] -%}
    {%- for source in graph.sources.values() if is_of_ingest(source) -%}
        {%- set needed_by = [] -%}
        {%- for resource in selected_resources -%}
            {%- set node = graph.nodes.get(resource, {}) -%}
            {%- if source.unique_id in [resource] + node.get("depends_on", {}).get("nodes", []) -%}
                {%- do needed_by.append(resource) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- if needed_by and not is_in_lake(source) -%}
            {%- do missing.append(source.schema ~ "." ~ source.identifier) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if missing -%}
        {{ exceptions.raise_compiler_error(first_names(missing) ~ " not found " ~ fix) }}
    {%- endif -%}
{%- endmacro %}
