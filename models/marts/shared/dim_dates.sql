{#- On Redshift: every fact joins it, so on every node; found by day. -#}
{{ config(dist="all", sort="calendar_date") }}

{% set month_names = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
] %}
{% set day_names = [
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
] %}

{% set first_year = var("calendar_first_year") | int %}
{% set last_year = var("calendar_last_year") | int %}
{% if not 1 <= first_year <= last_year <= 9998 %}
    {{ exceptions.raise_compiler_error(
        "calendar_first_year is " ~ first_year ~ " and calendar_last_year " ~ last_year
        ~ ": set the first to no later a year than the last, both from 1 to 9998"
    ) }}
{% endif %}
{% set first_day = modules.datetime.date(first_year, 1, 1) %}
{% set end_day = modules.datetime.date(last_year + 1, 1, 1) %}

with

steps as (

    {{ whole_numbers((end_day - first_day).days) }}

),

-- Days are counted from 1970-01-01.
counted as (

    select
        cast(
            whole_number
            + ({{ (first_day - modules.datetime.date(1970, 1, 1)).days }}) as bigint
        ) as day_number
    from steps

),

-- That day was a Thursday. The remainder is taken twice because that of a negative
-- number is negative.
days as (

    select
        day_number,
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
