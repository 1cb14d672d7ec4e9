{#- Of each source, its columns and what staging makes of them. -#}
{% set renamed = {
    "products": {
        "event_time": "listed_at",
        "product_id": "product_id",
        "category": "product_category",
        "item": "product_name",
        "size": "product_size",
        "cogs": "product_cogs_amount",
        "price": "product_price_amount",
        "inventory_level": "inventory_level",
        "contains_fruit": "has_fruit",
        "contains_veggies": "has_veggies",
        "contains_nuts": "has_nuts",
        "contains_caffeine": "has_caffeine",
        "propensity_to_buy": "propensity_to_buy",
    },
    "purchases": {
        "transaction_time": "purchased_at",
        "transaction_id": "transaction_id",
        "product_id": "product_id",
        "price": "purchase_price_amount",
        "quantity": "quantity",
        "is_member": "is_member",
        "member_discount": "member_discount",
        "add_supplements": "has_supplements",
        "supplement_price": "supplement_price_amount",
        "total_purchase": "total_purchase_amount",
    },
    "inventories": {
        "event_time": "moved_at",
        "product_id": "product_id",
        "existing_level": "existing_level",
        "stock_quantity": "stock_quantity",
        "new_level": "new_level",
    },
} %}

with

raw_counts as (

    {% for table, columns in renamed.items() %}
        select
            '{{ table }}' as stream_name,
            {% for place in range(13) %}
                {% if place < columns | length %}
                    count({{ (columns.keys() | list)[place] }}) as count_{{ place }},
                {% else %}
                    0 as count_{{ place }},
                {% endif %}
            {% endfor %}
            count(*) as record_count
        from {{ source("smoothies", table) }}
        {{ "union all" if not loop.last }}
    {% endfor %}

),

staged_counts as (

    {% for table, columns in renamed.items() %}
        select
            '{{ table }}' as stream_name,
            {% for place in range(13) %}
                {% if place < columns | length %}
                    count({{ (columns.values() | list)[place] }}) as count_{{ place }},
                {% else %}
                    0 as count_{{ place }},
                {% endif %}
            {% endfor %}
            count(record_key) as record_count
        from {{ ref("stg_smoothies__" ~ table) }}
        {{ "union all" if not loop.last }}
    {% endfor %}

)

-- dbt turns off Spark's strict casts: a value that does not fit becomes null silently.
select
    raw_counts.stream_name,
    raw_counts.record_count as raw_record_count,
    staged_counts.record_count
from raw_counts
inner join staged_counts
    on raw_counts.stream_name = staged_counts.stream_name
where
    raw_counts.record_count <> staged_counts.record_count
    {% for place in range(13) %}
        or raw_counts.count_{{ place }} <> staged_counts.count_{{ place }}
    {% endfor %}
