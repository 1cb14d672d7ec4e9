-- A sale has its listing's seller and event, and no more tickets of a listing are sold
-- than are listed.
with

sales as (

    select * from {{ ref("fct_ticket_sales") }}

),

listings as (

    select * from {{ ref("fct_ticket_listings") }}

),

sold as (

    select
        listing_id,
        sum(sold_ticket_count) as sold_ticket_count
    from sales
    group by listing_id

)

select
    sales.ticket_sale_id,
    sales.listing_id,
    sold.sold_ticket_count,
    listings.ticket_count
from sales
inner join listings
    on sales.listing_id = listings.listing_id
inner join sold
    on sales.listing_id = sold.listing_id
where
    sales.seller_id <> listings.seller_id
    or sales.event_id <> listings.event_id
    or sold.sold_ticket_count > listings.ticket_count
