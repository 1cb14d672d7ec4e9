{% macro timestamp_from_epoch(seconds) -%}
    {{ adapter.dispatch("timestamp_from_epoch")(seconds) }}
{%- endmacro %}

{% macro spark__timestamp_from_epoch(seconds) -%}
    timestamp_seconds({{ seconds }})
{%- endmacro %}

{% macro redshift__timestamp_from_epoch(seconds) -%}
    dateadd(second, {{ seconds }}, cast('1970-01-01 00:00:00' as timestamp))
{%- endmacro %}
