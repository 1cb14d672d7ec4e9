select unix_micros(paid_at) as paid_micros from marts.fct_rental_sales
