{#- On Redshift: every fact joins it, so on every node; found by day. -#}
{{ config(dist="all", sort="calendar_date") }}

{% set month_names = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
] %}
{% set day_names = [
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
] %}

with

rental_sales as (

    select
        min(paid_at) as first_at,
        max(paid_at) as last_at
    from {{ ref("fct_rental_sales") }}

),

purchases as (

    select
        min(purchased_at) as first_at,
        max(purchased_at) as last_at
    from {{ ref("fct_purchases_enriched") }}

),

movements as (

    select
        min(moved_at) as first_at,
        max(moved_at) as last_at
    from {{ ref("fct_inventory_movements") }}

),

seen as (

    select * from rental_sales
    union all
    select * from purchases
    union all
    select * from movements

),

-- A clock that says anything before 1900 or after 2199 is wrong.
years as (

    select
        cast(
            date_trunc(
                'year',
                greatest(min(first_at), cast('1900-01-01 00:00:00' as timestamp))
            ) as timestamp
        ) as first_at,
        least(cast(extract(year from max(last_at)) as integer), 2199) as last_year
    from seen

),

-- Enough for all of these years; days after the last go again.
steps as (

    {{ whole_numbers(109600) }}

),

-- Days are counted from 1970-01-01.
counted as (

    select
        years.last_year,
        cast(
            {{ epoch_seconds("years.first_at") }} / cast(86400 as decimal(18, 0))
            as bigint
        ) + steps.whole_number as day_number
    from years
    cross join steps

),

-- That day was a Thursday. The remainder is taken twice because that of a negative
-- number is negative.
days as (

    select
        day_number,
        last_year,
        cast({{ timestamp_from_epoch("day_number * 86400") }} as date) as calendar_date,
        cast(mod(mod(day_number + 3, 7) + 7, 7) + 1 as integer) as day_of_week
    from counted

),

-- A week belongs to the year that has its Thursday.
with_thursdays as (

    select
        *,
        cast(
            {{ timestamp_from_epoch("(day_number - day_of_week + 4) * 86400") }} as date
        ) as thursday
    from days
    where extract(year from calendar_date) <= last_year

),

final as (

    select
        -- keys
        calendar_date,

        -- attributes
        case cast(extract(month from calendar_date) as integer)
            {% for name in month_names %}
                when {{ loop.index }} then '{{ name }}'
            {% endfor %}
        end as month_name,
        case day_of_week
            {% for name in day_names %}
                when {{ loop.index }} then '{{ name }}'
            {% endfor %}
        end as day_name,

        -- numbers
        cast(extract(year from calendar_date) as integer) as year_number,
        cast(extract(quarter from calendar_date) as integer) as quarter_number,
        cast(extract(month from calendar_date) as integer) as month_number,
        cast(extract(day from calendar_date) as integer) as day_of_month,
        cast(extract(doy from calendar_date) as integer) as day_of_year,
        cast(extract(year from thursday) as integer) as iso_year,
        cast(
            floor((extract(doy from thursday) - 1) / cast(7 as decimal(18, 0))) + 1
            as integer
        ) as iso_week,
        day_of_week,

        -- flags
        day_of_week >= 6 as is_weekend,

        -- times
        cast(date_trunc('month', calendar_date) as date) as month_start_date
    from with_thursdays

)

select * from final
