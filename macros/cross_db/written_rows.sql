{% macro written_rows(rows) -%}
    {{ return(adapter.dispatch("written_rows")(rows)) }}
{%- endmacro %}

{#- One task, which writes one file per partition. Spark would distribute even a few rows over all
    cores, one file each. -#}
{% macro spark__written_rows(rows) -%}
    select /*+ coalesce(1) */ *
    from ({{ value_rows(rows) }}) as written
{%- endmacro %}

{% macro default__written_rows(rows) -%}
    {{ value_rows(rows) }}
{%- endmacro %}
