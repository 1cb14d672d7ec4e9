{#- The model, seed or snapshot of a relation. For a deferred relation or a CTE only the name is
    compared. -#}
{% macro node_of(relation) -%}
    {%- set name = relation.identifier.removeprefix("__dbt__cte__") -%}
    {%- set named = [] -%}
    {%- for node in graph.nodes.values()
        if node.resource_type in ["model", "seed", "snapshot"] and node.alias == name -%}
        {%- if node.schema == relation.schema -%}
            {{ return(node) }}
        {%- endif -%}
        {%- do named.append(node) -%}
    {%- endfor -%}
    {{ return(named | first) }}
{%- endmacro %}

{#- The name of a node for `--select`, with its package and version, if any. -#}
{% macro node_name(node) -%}
    {%- set version = node.get("version") -%}
    {{ return(
        (node.package_name ~ "." if node.package_name != project_name else "")
        ~ node.name ~ (".v" ~ version if version is not none else "")
    ) }}
{%- endmacro %}

{#- Whether `spark-ingest` writes a source: a stream or one of its own tables. -#}
{% macro is_of_ingest(source) -%}
    {{ return(
        source.loader == "spark-ingest" or "ingest" in (source.config.meta or {})
    ) }}
{%- endmacro %}
