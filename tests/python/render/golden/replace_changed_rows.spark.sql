merge into marts.fct_ticket_sales as kept
    using (
        select
            coalesce(given.ticket_sale_id, changed.ticket_sale_id) as changed_key,
            given.*
        from (select ticket_sale_id from staging.stg_tickit__sale) as changed
        full outer join fct_ticket_sales__tmp as given
            on changed.ticket_sale_id = given.ticket_sale_id
    ) as fresh
    on kept.ticket_sale_id = fresh.changed_key
    when matched and fresh.ticket_sale_id is null then delete
    when matched then update set
        ticket_sale_id = fresh.ticket_sale_id,
        buyer_name = fresh.buyer_name
    when not matched and fresh.ticket_sale_id is not null then insert (ticket_sale_id, buyer_name)
    values (fresh.ticket_sale_id, fresh.buyer_name)
