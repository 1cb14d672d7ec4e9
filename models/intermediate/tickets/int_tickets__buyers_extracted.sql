with

buyers as (

    select * from {{ ref("int_tickets__buyers_dated") }}

),

users as (

    select * from {{ ref("int_tickit__user_current") }}

),

final as (

    select
        -- keys
        buyers.user_id,

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
        buyers.first_purchase_date
    from buyers
    -- A buyer whom the other database does not have yet bought all the same.
    left join users
        on buyers.user_id = users.user_id

)

select * from final
