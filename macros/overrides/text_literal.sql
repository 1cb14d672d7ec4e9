{#- A value as a text of Spark's SQL, or null, with Spark's own escapes: a backslash and an
    apostrophe each get a backslash. -#}
{% macro text_literal(value) -%}
    {%- if value is none -%}
        null
    {%- else -%}
        '{{ value | string | replace("\\", "\\\\") | replace("'", "\\'") }}'
    {%- endif -%}
{%- endmacro %}
