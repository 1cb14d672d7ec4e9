with

changes as (

    {{ captured_changes("tickit", "date") }}

),

final as (

    select
        -- keys
        record_key,
        dateid as date_id,

        -- attributes
        {{ trimmed_text("day", 8) }} as day_code,
        {{ trimmed_text("month", 8) }} as month_code,
        {{ trimmed_text("qtr", 8) }} as quarter_code,

        -- numbers
        week as week_number,
        year as calendar_year,

        -- flags
        holiday <> 0 as is_holiday,

        -- times
        {{ date_from_days("caldate") }} as calendar_date,

        {{ columns_of_change() }}
    from changes

)

select * from final
