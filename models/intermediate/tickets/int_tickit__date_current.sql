with

days as (

    {{ latest_state(ref("int_tickit__date_history")) }}

),

final as (

    select
        -- keys
        date_id,

        -- attributes
        day_code,
        month_code,
        quarter_code,

        -- numbers
        week_number,
        calendar_year,
        cast(extract(quarter from calendar_date) as integer) as quarter_number,
        cast(extract(month from calendar_date) as integer) as month_number,
        cast(extract(day from calendar_date) as integer) as day_of_month,

        -- flags
        is_holiday,
        is_incomplete,

        -- times
        calendar_date,
        valid_from_at,

        -- metadata
        _commit_id
    from days

)

select * from final
