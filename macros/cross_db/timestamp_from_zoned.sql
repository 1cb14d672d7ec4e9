{#- Debezium's text for a time with a time zone, in UTC. Null for PostgreSQL's infinity and for
    years outside 1 to 9999, which engines read differently. -#}
{% macro timestamp_from_zoned(column) -%}
    case
            when substring({{ column }}, 1, 1) between '0' and '9'
                then cast({{ column }} as timestamp)
        end
{%- endmacro %}
