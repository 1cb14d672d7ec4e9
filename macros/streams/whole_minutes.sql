{#- A setting in minutes; raises an error unless it is an integer of at least 1. -#}
{% macro whole_minutes(name, value) -%}
    {%- if value is not integer or value < 1 -%}
        {{ exceptions.raise_compiler_error(
            name ~ " is " ~ (value | tojson) ~ ": it must be a whole number of minutes, 1 or more"
        ) }}
    {%- endif -%}
    {{ return(value) }}
{%- endmacro %}
