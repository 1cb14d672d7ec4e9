with

sales as (

    select * from {{ ref("int_tickit__sale_current") }}

),

users as (

    select * from {{ ref("int_tickit__user_current") }}

),

first_sales as (

    select
        seller_id,
        cast(min(sold_at) as date) as first_sale_date
    from sales
    where seller_id is not null
    group by seller_id

),

final as (

    select
        -- keys
        first_sales.seller_id as user_id,

        -- attributes
        users.username,
        {{ full_name("users") }} as full_name,
        users.city,
        users.state,
        users.email,
        users.phone,

        -- times
        first_sales.first_sale_date
    from first_sales
    -- A seller whom the other database does not have yet sold all the same.
    left join users
        on first_sales.seller_id = users.user_id

)

select * from final
