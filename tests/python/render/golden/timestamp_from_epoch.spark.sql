select timestamp_seconds(paid_second) as paid_at from marts.fct_rental_sales
