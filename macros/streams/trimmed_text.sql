{#- Comparing texts, Redshift leaves blanks at their ends out and Spark does not: only texts
    without any join and group the same. A cast cuts there, at a number of bytes, and here
    it does not: tests/dbt says when a text is too long. -#}
{% macro trimmed_text(column, max_bytes) -%}
    cast(rtrim({{ column }}) as varchar({{ max_bytes }}))
{%- endmacro %}
