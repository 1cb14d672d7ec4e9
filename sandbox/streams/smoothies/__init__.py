"""A chain of smoothie shops: what it sells, who buys what, when stock runs low."""

KEY_FIELDS = {
    "inventories": "product_id",
    "products": "product_id",
    "purchases": "transaction_id",
}
