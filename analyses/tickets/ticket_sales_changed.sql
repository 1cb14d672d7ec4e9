-- What changed in the ticket sales between two instants: before, and then.
{% set from_instant = "cast('2026-01-01 00:00:00' as timestamp)" %}
{% set to_instant = "cast('2026-12-31 12:00:00' as timestamp)" %}

with

changed as (

    {{ changes_between(
        ref("int_tickit__sale_history"),
        ["ticket_sale_id"],
        from_instant,
        to_instant
    ) }}

),

final as (

    select
        ticket_sale_id,
        buyer_id,
        listing_id,
        sold_ticket_count,
        tickets_amount,
        sold_at,
        is_before,
        valid_from_at
    from changed

)

select * from final
order by ticket_sale_id, valid_from_at
