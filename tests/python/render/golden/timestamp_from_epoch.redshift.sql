select dateadd(second, paid_second, cast('1970-01-01 00:00:00' as timestamp)) as paid_at from marts.fct_rental_sales
