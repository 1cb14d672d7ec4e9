{% macro epoch_seconds(timestamp) -%}
    {{ adapter.dispatch("epoch_seconds")(timestamp) }}
{%- endmacro %}

{% macro spark__epoch_seconds(timestamp) -%}
    unix_seconds({{ timestamp }})
{%- endmacro %}

{#- `extract(epoch ...)` rounds or truncates, depending on the type; date_trunc floors. -#}
{% macro redshift__epoch_seconds(timestamp) -%}
    datediff(
        second,
        cast('1970-01-01 00:00:00' as timestamp),
        date_trunc('second', {{ timestamp }})
    )
{%- endmacro %}
