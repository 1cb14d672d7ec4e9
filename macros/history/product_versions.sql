{% macro product_versions(relation) -%}
    {{ versions(
        relation,
        key="product_id",
        attributes=product_attributes(),
        time_column="changed_at",
        ended_column="is_withdrawn",
    ) }}
{%- endmacro %}

{#- Excludes stock level and propensity to buy: they are measurements, and each would create a
    version. -#}
{% macro product_attributes() -%}
    {{ return([
        "product_category",
        "product_name",
        "product_size",
        "product_cogs_amount",
        "product_price_amount",
        "has_fruit",
        "has_veggies",
        "has_nuts",
        "has_caffeine",
    ]) }}
{%- endmacro %}
