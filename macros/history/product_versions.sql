{% macro product_versions(relation) -%}
    {{ versions(
        relation,
        key="product_id",
        attributes=product_attributes(),
        time_column="changed_at",
        ended_column="is_withdrawn",
    ) }}
{%- endmacro %}

{% macro product_attributes() -%}
    {{ return([
        "product_category",
        "product_name",
        "product_size",
        "product_cogs_amount",
        "product_price_amount",
        "inventory_level",
        "propensity_to_buy",
        "has_fruit",
        "has_veggies",
        "has_nuts",
        "has_caffeine",
    ]) }}
{%- endmacro %}
