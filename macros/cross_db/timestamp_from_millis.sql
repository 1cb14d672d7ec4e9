{% macro timestamp_from_millis(millis) -%}
    {{ adapter.dispatch("timestamp_from_millis")(millis) }}
{%- endmacro %}

{% macro spark__timestamp_from_millis(millis) -%}
    timestamp_millis({{ millis }})
{%- endmacro %}

{#- Days and what is left of them: `dateadd` counts in integers. -#}
{% macro redshift__timestamp_from_millis(millis) -%}
    dateadd(
        millisecond,
        cast({{ millis }} - floor({{ millis }} / 86400000.0) * 86400000 as integer),
        dateadd(
            day,
            cast(floor({{ millis }} / 86400000.0) as integer),
            cast('1970-01-01 00:00:00' as timestamp)
        )
    )
{%- endmacro %}
