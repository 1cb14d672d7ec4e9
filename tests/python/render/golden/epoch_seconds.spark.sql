select unix_seconds(paid_at) as paid_second from marts.fct_rental_sales
