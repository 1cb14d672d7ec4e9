{#- `avg` of decimals keeps their scale on Redshift and extends it on Spark. With these types both
    divide to the same scale, so that rounded results are equal. -#}
{% macro average_seconds(seconds) -%}
    cast(
        cast(sum({{ seconds }}) as decimal(26, 6))
        / nullif(cast(count({{ seconds }}) as decimal(11, 0)), 0) as decimal(18, 3)
    )
{%- endmacro %}
