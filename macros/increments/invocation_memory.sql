{#- `graph` is the one thing that all models of an invocation share: dbt has no place meant for
    it, and a table would cost a statement for each question. The id keeps programs that invoke
    dbt again and again, with one manifest, from reading an old memory. -#}
{% macro invocation_memory() -%}
    {{ return(graph.setdefault("millrace " ~ invocation_id, {})) }}
{%- endmacro %}
