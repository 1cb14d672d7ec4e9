with

moments as (

    select
        cast('1970-01-01 00:00:00' as timestamp) as moment,
        0 as expected
    union all
    select
        cast('1970-01-01 00:00:01.999999' as timestamp) as moment,
        1 as expected
    union all
    select
        cast('1969-12-31 23:59:59.5' as timestamp) as moment,
        -1 as expected
    union all
    select
        cast('1969-12-31 23:59:59' as timestamp) as moment,
        -1 as expected
    union all
    -- The hours that a zone with summer time has twice, or not at all.
    select
        cast('2026-03-08 02:30:00' as timestamp) as moment,
        1772937000 as expected
    union all
    select
        cast('2026-11-01 01:30:00' as timestamp) as moment,
        1793496600 as expected
    union all
    -- Beyond the range of 32 bits.
    select
        cast('2100-01-01 00:00:00' as timestamp) as moment,
        4102444800 as expected

),

answers as (

    select
        moment,
        expected,
        {{ epoch_seconds("moment") }} as actual
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
