-- Each time that the price of a listing changed: what a ticket cost before, and then.
with

versions as (

    select
        listing_id,
        ticket_amount,
        is_deleted,
        valid_from_at,
        lag(ticket_amount) over (
            partition by listing_id
            order by valid_from_position
        ) as earlier_ticket_amount
    from {{ ref("int_tickit__listing_history") }}

),

final as (

    select
        listing_id,
        valid_from_at as changed_at,
        earlier_ticket_amount,
        ticket_amount,
        ticket_amount - earlier_ticket_amount as difference_amount
    from versions
    where
        not is_deleted
        and earlier_ticket_amount <> ticket_amount

)

select * from final
order by changed_at, listing_id
