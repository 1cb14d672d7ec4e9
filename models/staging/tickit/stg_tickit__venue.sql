with

changes as (

    {{ captured_changes("tickit", "venue") }}

),

final as (

    select
        -- keys
        record_key,
        venueid as venue_id,

        -- attributes
        {{ trimmed_text("venuename", 512) }} as venue_name,
        {{ trimmed_text("venuecity", 128) }} as venue_city,
        {{ trimmed_text("venuestate", 8) }} as venue_state,

        -- numbers
        venueseats as seat_count,

        {{ columns_of_change() }}
    from changes

)

select * from final
