{% macro in_cents(amount) -%}
    cast({{ amount }} * {{ var("cents_of_euro", 100) }} as bigint)
{%- endmacro %}
