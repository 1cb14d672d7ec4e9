{#- Commits what the connection of a model has open, so that what follows is a transaction of its
    own. Rendering a model leaves one open where it asked for relations or columns. -#}
{% macro end_transaction() -%}
    {{ return(adapter.dispatch("end_transaction")()) }}
{%- endmacro %}

{#- There each statement is one. -#}
{% macro spark__end_transaction() -%}
{%- endmacro %}

{#- dbt refuses to commit where nothing is open: a statement opens it in any case. -#}
{% macro redshift__end_transaction() -%}
    {%- if rendered_branch() is none -%}
        {%- call statement(auto_begin=true) -%}
            select 1
        {%- endcall -%}
        {%- do adapter.commit() -%}
    {%- endif -%}
{%- endmacro %}
