with

changes as (

    {{ captured_changes("tickit", "listing") }}

),

final as (

    select
        -- keys
        record_key,
        listid as listing_id,
        sellerid as seller_id,
        eventid as event_id,
        dateid as date_id,

        -- numbers
        numtickets as ticket_count,
        cast(priceperticket as decimal(18, 2)) as ticket_amount,
        cast(totalprice as decimal(18, 2)) as listing_amount,

        -- times
        {{ timestamp_from_millis("listtime") }} as offered_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
