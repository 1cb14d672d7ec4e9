{#- What people and programs write where there is nothing to say. -#}
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
