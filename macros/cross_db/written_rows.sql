{% macro written_rows(rows) -%}
    {{ return(adapter.dispatch("written_rows")(rows)) }}
{%- endmacro %}

{#- One task, which writes one file for each partition of the table. Spark would share even a handful
    of rows out to as many tasks as it has cores, and who reads them would open a file of each. -#}
{% macro spark__written_rows(rows) -%}
    select /*+ coalesce(1) */ *
    from ({{ value_rows(rows) }}) as written
{%- endmacro %}

{% macro default__written_rows(rows) -%}
    {{ value_rows(rows) }}
{%- endmacro %}
