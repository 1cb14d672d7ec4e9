{#- What Debezium writes of a time with a time zone, in UTC. Null for PostgreSQL's infinity, a year
    before 1 and one behind 9999, of which no two engines read the same text. -#}
{% macro timestamp_from_zoned(column) -%}
    case
            when substring({{ column }}, 1, 1) between '0' and '9'
                then cast({{ column }} as timestamp)
        end
{%- endmacro %}
