{% macro epoch_micros(timestamp) -%}
    {{ adapter.dispatch("epoch_micros")(timestamp) }}
{%- endmacro %}

{% macro spark__epoch_micros(timestamp) -%}
    unix_micros({{ timestamp }})
{%- endmacro %}

{% macro redshift__epoch_micros(timestamp) -%}
    datediff(microsecond, cast('1970-01-01 00:00:00' as timestamp), {{ timestamp }})
{%- endmacro %}
