{#- On Redshift: a row for each month, on every node. -#}
{{ config(dist="all", sort="month_start_date") }}

with

days as (

    select
        *,
        cast(date_trunc('month', sale_date) as date) as month_start_date
    from {{ ref("rpt_ticket_sales_by_date") }}

),

final as (

    select
        -- keys
        month_start_date,

        -- numbers
        year_number,
        month_number,
        cast(sum(sold_ticket_count) as bigint) as sold_ticket_count,
        cast(sum(sales_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(commission_amount) as decimal(18, 2)) as commission_amount,
        cast(sum(earnings_amount) as decimal(18, 2)) as earnings_amount,
        cast(sum(sale_count) as bigint) as sale_count
    from days
    group by month_start_date, year_number, month_number

)

select * from final
