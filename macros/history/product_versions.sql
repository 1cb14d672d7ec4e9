{% macro product_versions(relation) -%}
    {{ versions(
        relation,
        key="product_id",
        attributes=product_attributes(),
        time_column="changed_at",
        ended_column="is_withdrawn",
    ) }}
{%- endmacro %}

{#- Not the level of stock and the propensity to buy, which the catalogue sends along: they
    are measures of a moment, and would make a version of each. -#}
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
