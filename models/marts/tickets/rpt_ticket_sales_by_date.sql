{#- On Redshift: a row for each day, on every node. -#}
{{ config(dist="all", sort="sale_date") }}

with

sales as (

    select * from {{ ref("fct_ticket_sales") }}

),

final as (

    select
        -- keys
        sale_date,

        -- numbers
        cast(extract(year from sale_date) as integer) as year_number,
        cast(extract(month from sale_date) as integer) as month_number,
        cast(sum(sold_ticket_count) as bigint) as sold_ticket_count,
        cast(sum(tickets_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(commission_amount) as decimal(18, 2)) as commission_amount,
        cast(sum(earnings_amount) as decimal(18, 2)) as earnings_amount,
        count(*) as sale_count
    from sales
    group by sale_date

)

select * from final
