{#- Null for a day before Julian day 0 or after the last day of a timestamp, such as PostgreSQL's
    infinity. -#}
{% macro date_from_days(days) -%}
    case
            when {{ days }} between -2440588 and 106751990
                then {{ adapter.dispatch("date_from_days")(days) }}
        end
{%- endmacro %}

{% macro spark__date_from_days(days) -%}
    date_add(cast('1970-01-01' as date), {{ days }})
{%- endmacro %}

{% macro redshift__date_from_days(days) -%}
    cast(dateadd(day, {{ days }}, cast('1970-01-01 00:00:00' as timestamp)) as date)
{%- endmacro %}
