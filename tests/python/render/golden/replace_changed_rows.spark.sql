merge into marts.fct_ticket_sales as existing
    using (
        select
            coalesce(new_rows.ticket_sale_id, changed.ticket_sale_id) as changed_key,
            new_rows.*
        from (select ticket_sale_id from staging.stg_tickit__sale) as changed
        full outer join fct_ticket_sales__tmp as new_rows
            on changed.ticket_sale_id = new_rows.ticket_sale_id
    ) as updates
    on existing.ticket_sale_id = updates.changed_key
    when matched and updates.ticket_sale_id is null then delete
    when matched then update set
        ticket_sale_id = updates.ticket_sale_id,
        buyer_name = updates.buyer_name
    when not matched and updates.ticket_sale_id is not null then insert (ticket_sale_id, buyer_name)
    values (updates.ticket_sale_id, updates.buyer_name)
