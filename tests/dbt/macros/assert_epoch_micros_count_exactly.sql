with

moments as (

    select
        cast('1970-01-01 00:00:00.000001' as timestamp) as moment,
        cast(1 as bigint) as expected
    union all
    select
        cast('1969-12-31 23:59:59.999999' as timestamp) as moment,
        cast(-1 as bigint) as expected
    union all
    select
        cast('2026-03-08 02:30:00.123456' as timestamp) as moment,
        cast(1772937000123456 as bigint) as expected
    union all
    select
        cast('2100-01-01 00:00:00' as timestamp) as moment,
        cast(4102444800000000 as bigint) as expected

),

answers as (

    select
        moment,
        expected,
        {{ epoch_micros("moment") }} as actual
    from moments

)

select
    moment,
    expected,
    actual
from answers
where
    actual is null
    or actual <> expected
