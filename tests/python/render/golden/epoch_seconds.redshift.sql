select datediff(
        second,
        cast('1970-01-01 00:00:00' as timestamp),
        date_trunc('second', paid_at)
    ) as paid_second from marts.fct_rental_sales
