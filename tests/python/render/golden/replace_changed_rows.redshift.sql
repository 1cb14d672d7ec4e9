delete from marts.fct_ticket_sales
    where
        ticket_sale_id in (select ticket_sale_id from fct_ticket_sales__tmp)
        or ticket_sale_id in (select ticket_sale_id from staging.stg_tickit__sale);

    insert into marts.fct_ticket_sales (ticket_sale_id, buyer_name)
    select ticket_sale_id, buyer_name
    from fct_ticket_sales__tmp
