with

sales as (

    select * from {{ ref("int_tickit__sale_current") }}

),

users as (

    select * from {{ ref("int_tickit__user_current") }}

),

first_purchases as (

    select
        buyer_id,
        cast(min(sold_at) as date) as first_purchase_date
    from sales
    where buyer_id is not null
    group by buyer_id

),

final as (

    select
        -- keys
        first_purchases.buyer_id as user_id,

        -- attributes
        users.username,
        {{ full_name("users") }} as full_name,
        users.city,
        users.state,
        users.email,
        users.phone,

        -- flags
        coalesce(users.is_fan_of_sports, false) as is_fan_of_sports,
        coalesce(users.is_fan_of_theatre, false) as is_fan_of_theatre,
        coalesce(users.is_fan_of_concerts, false) as is_fan_of_concerts,
        coalesce(users.is_fan_of_jazz, false) as is_fan_of_jazz,
        coalesce(users.is_fan_of_classical, false) as is_fan_of_classical,
        coalesce(users.is_fan_of_opera, false) as is_fan_of_opera,
        coalesce(users.is_fan_of_rock, false) as is_fan_of_rock,
        coalesce(users.is_fan_of_vegas, false) as is_fan_of_vegas,
        coalesce(users.is_fan_of_broadway, false) as is_fan_of_broadway,
        coalesce(users.is_fan_of_musicals, false) as is_fan_of_musicals,

        -- times
        first_purchases.first_purchase_date
    from first_purchases
    -- A buyer whom the other database does not have yet bought all the same.
    left join users
        on first_purchases.buyer_id = users.user_id

)

select * from final
