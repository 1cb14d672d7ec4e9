{#- A model that is ephemeral has no name in the lake: its own text stands for it, with the
    texts of those it reads. -#}
{% macro queryable(relation) -%}
    {%- if relation is string or not (relation.is_cte | default(false)) -%}
        {{ return(relation) }}
    {%- endif -%}
    {{ return(queryable_model(relation.identifier.removeprefix("__dbt__cte__"))) }}
{%- endmacro %}

{% macro queryable_model(name) -%}
    {%- for node in graph.nodes.values()
        if node.name == name and node.resource_type in ["model", "seed"] -%}
        {%- if node.config.materialized != "ephemeral" -%}
            {{ return(api.Relation.create(
                database=node.database, schema=node.schema, identifier=node.alias
            )) }}
        {%- endif -%}
        {{ return(
            "(" ~ render(
                modules.re.sub("\\bref\\(", "queryable_model(", node.raw_code)
            ) ~ ")"
        ) }}
    {%- endfor -%}
{%- endmacro %}
