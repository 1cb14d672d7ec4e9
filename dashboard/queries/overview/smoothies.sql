-- Smoothies
-- Lines of purchases, at the price of their time.
select
    count(*) as stored_count,
    sum(total_purchase_amount) as amount,
    max(purchased_at) as newest_at
from marts.fct_purchases_enriched
