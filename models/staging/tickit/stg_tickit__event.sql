with

changes as (

    {{ captured_changes("tickit", "event") }}

),

final as (

    select
        -- keys
        record_key,
        eventid as event_id,
        venueid as venue_id,
        catid as category_id,
        dateid as date_id,

        -- attributes
        {{ trimmed_text("eventname", 1024) }} as event_name,

        -- times
        {{ timestamp_from_micros("starttime") }} as starts_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
