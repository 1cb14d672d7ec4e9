{#- A number or text as SQL literal. A backslash is an escape character on one engine only:
    `chr(92)` is the same on both. -#}
{% macro sql_literal(value) -%}
    {%- if value is string -%}
        {%- set text = "'" ~ value | replace("'", "''") ~ "'" -%}
        {{ return(
            "(" ~ text | replace("\\", "' || chr(92) || '") ~ ")" if "\\" in text else text
        ) }}
    {%- endif -%}
    {{ return(value) }}
{%- endmacro %}
