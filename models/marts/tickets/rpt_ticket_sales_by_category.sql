{#- On Redshift: a few rows, on every node. -#}
{{ config(dist="all", sort="category_name") }}

with

-- A sale whose event the lake does not have yet is a sale all the same.
sales as (

    select
        *,
        coalesce(category_id, -1) as known_category_id
    from {{ ref("fct_ticket_sales") }}

),

-- Sales have the names of their time. A category that was renamed is one, under its
-- name of now; one that was deleted has its last.
categories as (

    select * from {{ ref("int_tickit__category_history") }}
    where is_current

),

-- What was paid is for all tickets of a sale: it is not multiplied by their number.
totals as (

    select
        known_category_id as category_id,
        cast(sum(sold_ticket_count) as bigint) as sold_ticket_count,
        cast(sum(tickets_amount) as decimal(18, 2)) as sales_amount,
        cast(sum(commission_amount) as decimal(18, 2)) as commission_amount,
        cast(sum(earnings_amount) as decimal(18, 2)) as earnings_amount,
        count(*) as sale_count
    from sales
    group by known_category_id

),

final as (

    select
        -- keys
        totals.category_id,

        -- attributes
        cast(coalesce(categories.category_group, 'Unknown') as varchar(64))
            as category_group,
        cast(coalesce(categories.category_name, 'Unknown') as varchar(64))
            as category_name,

        -- numbers
        totals.sold_ticket_count,
        totals.sales_amount,
        totals.commission_amount,
        totals.earnings_amount,
        totals.sale_count
    from totals
    left join categories
        on totals.category_id = categories.category_id

)

select * from final
