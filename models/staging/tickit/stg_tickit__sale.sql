with

changes as (

    {{ captured_changes("tickit", "sale") }}

),

final as (

    select
        -- keys
        record_key,
        saleid as ticket_sale_id,
        listid as listing_id,
        sellerid as seller_id,
        buyerid as buyer_id,
        eventid as event_id,
        dateid as date_id,

        -- numbers
        qtysold as sold_ticket_count,
        cast(pricepaid as decimal(18, 2)) as tickets_amount,
        cast(commission as decimal(18, 2)) as commission_amount,

        -- times
        {{ timestamp_from_micros("saletime") }} as sold_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
