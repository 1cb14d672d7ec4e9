{#- What an engine would answer to a macro that asks it, while golden files are rendered. -#}
{% macro run_query(query) -%}
    {%- do log("asks the lake: " ~ tojson({"node": model.unique_id, "query": query})) -%}
    {%- set answer = "UTC" if "timezone" in query | lower else "bronze" -%}
    {{ return({"rows": [[answer, answer]]}) }}
{%- endmacro %}

{% macro load_relation(relation) -%}
    {{ return(relation) }}
{%- endmacro %}
