{#- On Redshift: a few rows, on every node. -#}
{{ config(dist="all", sort="category_name") }}

with

-- A sale whose event or category the lake does not have yet is a sale all the same.
sales as (

    select
        sold_ticket_count,
        tickets_amount,
        commission_amount,
        earnings_amount,
        cast(coalesce(category_group, 'Unknown') as varchar(64)) as category_group,
        cast(coalesce(category_name, 'Unknown') as varchar(64)) as category_name
    from {{ ref("fct_ticket_sales") }}

),

-- What was paid is for all tickets of a sale: it is not multiplied by their number.
final as (

    select
        -- keys
        category_group,
        category_name,

        -- numbers
        cast(sum(sold_ticket_count) as bigint) as sold_ticket_count,
        cast(sum(tickets_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(commission_amount) as decimal(18, 2)) as commission_amount,
        cast(sum(earnings_amount) as decimal(18, 2)) as earnings_amount,
        count(*) as sale_count
    from sales
    group by category_group, category_name

)

select * from final
