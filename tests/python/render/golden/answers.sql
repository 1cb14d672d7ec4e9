{#- What an engine would answer to a macro that asks it, while golden files are rendered. -#}
{% macro run_query(query) -%}
    {%- do log("asks the lake: " ~ tojson({"node": model.unique_id, "query": query})) -%}
    {%- set answers = {"timezone": "UTC", "version()": "4.1.1 golden"} -%}
    {%- set found = answers.keys() | select("in", query | lower) | list -%}
    {%- set answer = answers[found[0]] if found else "bronze" -%}
    {{ return({"rows": [[answer, answer]]}) }}
{%- endmacro %}

{% macro load_relation(relation) -%}
    {{ return(relation) }}
{%- endmacro %}
