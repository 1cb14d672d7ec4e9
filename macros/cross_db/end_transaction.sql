{#- Commits the open transaction of a model's connection, so that the next statements run in a new
    one. Rendering a model leaves one open if it queried relations or columns. -#}
{% macro end_transaction() -%}
    {{ return(adapter.dispatch("end_transaction")()) }}
{%- endmacro %}

{#- On Spark each statement is a transaction. -#}
{% macro spark__end_transaction() -%}
{%- endmacro %}

{#- dbt does not commit without an open transaction: the statement opens one. -#}
{% macro redshift__end_transaction() -%}
    {%- if rendered_branch() is none -%}
        {%- call statement(auto_begin=true) -%}
            select 1
        {%- endcall -%}
        {%- do adapter.commit() -%}
    {%- endif -%}
{%- endmacro %}
