with

sellers as (

    select * from {{ ref("int_tickets__sellers_dated") }}

),

users as (

    select * from {{ ref("int_tickit__user_current") }}

),

final as (

    select
        -- keys
        sellers.user_id,

        -- attributes
        users.username,
        {{ full_name("users") }} as full_name,
        users.city,
        users.state,
        users.email,
        users.phone,

        -- times
        sellers.first_sale_date
    from sellers
    -- A seller whom the other database does not have yet sold all the same.
    left join users
        on sellers.user_id = users.user_id

)

select * from final
