{% macro seconds_between(start, end) -%}
    cast(
        cast({{ epoch_micros(end) }} - {{ epoch_micros(start) }} as decimal(18, 0))
        / 1000000 as decimal(18, 6)
    )
{%- endmacro %}
