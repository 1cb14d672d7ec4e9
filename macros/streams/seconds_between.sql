{#- Wide enough for any two timestamps: a producer may send microseconds instead of milliseconds,
    which is the year 55840. -#}
{% macro seconds_between(start, end) -%}
    cast(
        (
            cast({{ epoch_micros(end) }} as decimal(20, 0))
            - cast({{ epoch_micros(start) }} as decimal(20, 0))
        ) / 1000000 as decimal(20, 6)
    )
{%- endmacro %}
