with

moments as (

    select
        cast('1970-01-01 00:00:00' as timestamp) as moment,
        cast(0 as bigint) as seconds
    union all
    select
        cast('1969-12-31 23:59:59' as timestamp) as moment,
        cast(-1 as bigint) as seconds
    union all
    select
        cast('2026-03-08 02:30:00' as timestamp) as moment,
        cast(1772937000 as bigint) as seconds
    union all
    select
        cast('2100-01-01 00:00:00' as timestamp) as moment,
        cast(4102444800 as bigint) as seconds

),

answers as (

    select
        moment,
        seconds,
        {{ timestamp_from_epoch("seconds") }} as actual
    from moments

)

select
    moment,
    seconds,
    actual
from answers
where
    actual is null
    or actual <> moment
