{#- Redshift ignores trailing blanks when it compares texts and Spark does not: without them both
    join and group the same way. On Redshift the cast truncates to a number of bytes, on Spark it
    does not: a test reports texts that are too long. -#}
{% macro trimmed_text(column, max_bytes) -%}
    cast(rtrim({{ column }}) as varchar({{ max_bytes }}))
{%- endmacro %}
