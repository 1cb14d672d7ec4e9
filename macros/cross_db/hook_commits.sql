{#- Whether what a hook writes at this place is committed on its own, whatever becomes of the
    model. -#}
{% macro hook_commits(inside_transaction) -%}
    {{ return(adapter.dispatch("hook_commits")(inside_transaction)) }}
{%- endmacro %}

{#- Spark has no transactions, and runs only the hooks that others run inside one. -#}
{% macro spark__hook_commits(inside_transaction) -%}
    {{ return(inside_transaction) }}
{%- endmacro %}

{% macro redshift__hook_commits(inside_transaction) -%}
    {{ return(not inside_transaction) }}
{%- endmacro %}
