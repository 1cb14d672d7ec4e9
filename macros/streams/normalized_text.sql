{#- Turns common placeholders for a missing value into null. -#}
{% macro normalized_text(column, max_bytes) -%}
    cast(
        case
            when
                lower(trim({{ column }})) in ('', 'null', 'none', 'n/a', 'unknown')
                then null
            else {{ column }}
        end as varchar({{ max_bytes }})
    )
{%- endmacro %}
