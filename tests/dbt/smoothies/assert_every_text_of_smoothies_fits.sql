{#- Of each table of bronze, its texts and how many bytes staging lets them have. -#}
{% set texts = {
    "products": {
        "product_id": 64,
        "_key": 64,
        "category": 256,
        "item": 256,
        "size": 64,
    },
    "purchases": {
        "transaction_id": 64,
        "product_id": 64,
    },
    "inventories": {
        "product_id": 64,
    },
} %}

-- Spark keeps a longer text whole, Redshift cuts it: the engines would differ.
{% for table, columns in texts.items() %}
    select
        '{{ table }}' as stream_name,
        _kafka_topic,
        _kafka_partition,
        _kafka_offset
    from {{ source("smoothies", table) }}
    where
        1 = 0
        {% for column, max_bytes in columns.items() %}
            or octet_length(rtrim({{ column }})) > {{ max_bytes }}
        {% endfor %}
    {{ "union all" if not loop.last }}
{% endfor %}
