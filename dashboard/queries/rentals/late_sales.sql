-- Late sales of the window
select
    payment_id,
    sales_region,
    country,
    sale_amount,
    paid_at,
    _kafka_timestamp as sent_at
from marts.fct_rental_sales
where
    paid_at >= :window_start_at
    and paid_at < :window_end_at
    and _kafka_timestamp >= :window_end_at
order by _kafka_timestamp desc, payment_id asc
