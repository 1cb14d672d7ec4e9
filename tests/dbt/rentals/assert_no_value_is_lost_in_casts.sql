with

raw_counts as (

    select
        count(*) as record_count,
        count(payment_id) as payment_id_count,
        count(customer_id) as customer_id_count,
        count(city) as city_count,
        count(district) as district_count,
        count(country) as country_count,
        count(amount) as amount_count,
        count(payment_date) as payment_date_count
    from {{ source("pagila", "sales") }}

),

staged_counts as (

    select
        count(record_key) as record_count,
        count(payment_id) as payment_id_count,
        count(customer_id) as customer_id_count,
        count(city) as city_count,
        count(district) as district_count,
        count(country) as country_count,
        count(sale_amount) as amount_count,
        count(paid_at) as payment_date_count
    from {{ ref("stg_pagila__sales") }}

)

-- dbt turns off Spark's strict casts: a value that does not fit becomes null silently.
select
    raw_counts.record_count as raw_record_count,
    staged_counts.record_count
from raw_counts
cross join staged_counts
where
    raw_counts.record_count <> staged_counts.record_count
    or raw_counts.payment_id_count <> staged_counts.payment_id_count
    or raw_counts.customer_id_count <> staged_counts.customer_id_count
    or raw_counts.city_count <> staged_counts.city_count
    or raw_counts.district_count <> staged_counts.district_count
    or raw_counts.country_count <> staged_counts.country_count
    or raw_counts.amount_count <> staged_counts.amount_count
    or raw_counts.payment_date_count <> staged_counts.payment_date_count
