{% macro date_from_days(days) -%}
    {{ adapter.dispatch("date_from_days")(days) }}
{%- endmacro %}

{% macro spark__date_from_days(days) -%}
    date_add(cast('1970-01-01' as date), {{ days }})
{%- endmacro %}

{% macro redshift__date_from_days(days) -%}
    cast(dateadd(day, {{ days }}, cast('1970-01-01 00:00:00' as timestamp)) as date)
{%- endmacro %}
