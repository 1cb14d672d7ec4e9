{#- `graph` is the one thing that all models of an invocation share. The id keeps programs
    that invoke dbt again and again, with one manifest, from reading an old memory. -#}
{% macro invocation_memory() -%}
    {{ return(graph.setdefault("millrace " ~ invocation_id, {})) }}
{%- endmacro %}
