{#- `avg` of decimals keeps their scale on Redshift and adds to it on Spark. Of these types
    both divide to the same scale, so fine that rounding the result leaves no difference. -#}
{% macro average_seconds(seconds) -%}
    cast(
        cast(sum({{ seconds }}) as decimal(26, 6))
        / nullif(cast(count({{ seconds }}) as decimal(11, 0)), 0) as decimal(18, 3)
    )
{%- endmacro %}
