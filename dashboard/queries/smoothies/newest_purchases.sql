-- Newest purchases
-- Each line with its product as it was then.
select
    purchased_at,
    product_name,
    product_category,
    product_size,
    quantity,
    purchase_price_amount,
    total_purchase_amount,
    is_member,
    is_discrepant
from marts.fct_purchases_enriched
order by purchased_at desc, record_key asc
limit 50
