{#- A number or a text as SQL writes it. A backslash is an escape to one engine and itself to the
    other; its number is neither. -#}
{% macro sql_literal(value) -%}
    {%- if value is string -%}
        {%- set text = "'" ~ value | replace("'", "''") ~ "'" -%}
        {{ return(
            "(" ~ text | replace("\\", "' || chr(92) || '") ~ ")" if "\\" in text else text
        ) }}
    {%- endif -%}
    {{ return(value) }}
{%- endmacro %}
