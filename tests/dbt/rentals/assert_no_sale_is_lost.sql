with

records as (

    select * from {{ ref("stg_pagila__sales") }}

),

sales as (

    select * from {{ ref("fct_rental_sales") }}

),

sent as (

    select distinct payment_id
    from records
    where
        not is_tombstone
        -- Ingest may have gone on since the fact was built.
        and coalesce(_commit_id, 0) <= {{ recorded_read_point(
            ref("fct_rental_sales"), "pagila.sales"
        ) }}

)

-- One more record of a payment may be there than the fact has, never one less.
select
    sent.payment_id as sent_payment_id,
    sales.payment_id as kept_payment_id
from sent
full outer join sales
    on sent.payment_id = sales.payment_id
where
    sent.payment_id is null
    or sales.payment_id is null
