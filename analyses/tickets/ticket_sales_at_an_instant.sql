-- What had been sold by day at an instant, by the databases of then, and is sold now.
{% set instant = "cast('2026-12-31 12:00:00' as timestamp)" %}

with

earlier as (

    {{ state_as_of(ref("int_tickit__sale_history"), instant) }}

),

now as (

    select * from {{ ref("int_tickit__sale_current") }}

),

sales as (

    select
        cast(sold_at as date) as sale_date,
        tickets_amount as earlier_amount,
        cast(0 as decimal(18, 2)) as now_amount
    from earlier
    union all
    select
        cast(sold_at as date) as sale_date,
        cast(0 as decimal(18, 2)) as earlier_amount,
        tickets_amount as now_amount
    from now

),

final as (

    select
        sale_date,
        cast(sum(earlier_amount) as decimal(18, 2)) as earlier_sales_amount,
        cast(sum(now_amount) as decimal(18, 2)) as now_sales_amount
    from sales
    group by sale_date

)

select * from final
order by sale_date
