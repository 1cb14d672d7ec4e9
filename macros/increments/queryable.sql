{#- What a question to the lake may read for a model: its relation, or the query that it is where
    the model is ephemeral. A model that is ephemeral has no name in the lake: its own text stands
    for it, with the texts of those it reads. -#}
{% macro queryable(relation) -%}
    {%- if relation is string or not (relation.is_cte | default(false)) -%}
        {{ return(relation) }}
    {%- endif -%}
    {{ return(queryable_model(relation.identifier.removeprefix("__dbt__cte__"))) }}
{%- endmacro %}

{#- The same for a model or a seed by what `ref` is given, within another's text. Takes what `ref`
    takes: a name, before it a package, and a version. -#}
{% macro queryable_model(name, name_in_package=none, version=none, v=none) -%}
    {%- set package = name if name_in_package else none -%}
    {%- set name = name_in_package or name -%}
    {%- set version = version or v -%}
    {%- for node in graph.nodes.values()
        if node.name == name and node.resource_type in ["model", "seed"]
        and package in [none, node.package_name]
        and (
            version | string == node.version | string if version is not none
            else node.version | default(none) == node.latest_version | default(none)
        ) -%}
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
    {{ exceptions.raise_compiler_error(
        "no model or seed is named " ~ name ~ ", which an ephemeral one reads"
    ) }}
{%- endmacro %}
