-- The addresses of each district, by the database's log and as queries see them.
with

addresses as (

    select * from {{ ref("int_pagila__address_current") }}

),

polled_addresses as (

    select * from {{ ref("int_pagila__polled_address_current") }}

),

captured as (

    select
        address_district,
        1 as captured_count,
        0 as polled_count
    from addresses

    union all

    -- Queries do not capture deletes: the row remains here.
    select
        address_district,
        0 as captured_count,
        1 as polled_count
    from polled_addresses

),

final as (

    select
        address_district,
        sum(captured_count) as captured_count,
        sum(polled_count) as polled_count
    from captured
    group by address_district

)

select * from final
order by address_district asc nulls last
