select datediff(microsecond, cast('1970-01-01 00:00:00' as timestamp), paid_at) as paid_micros from marts.fct_rental_sales
