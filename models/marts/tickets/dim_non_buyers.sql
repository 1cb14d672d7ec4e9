{{ config(dist="user_id", sort="user_id") }}

with

users as (

    select * from {{ ref("int_tickit__user_current") }}

),

buyers as (

    select * from {{ ref("int_tickets__buyers_extracted") }}

),

final as (

    select
        -- keys
        users.user_id,

        -- attributes
        users.username,
        {{ full_name("users") }} as full_name,
        users.city,
        users.state,
        users.email,
        users.phone,

        -- flags
        -- Who does not say so is no fan.
        coalesce(users.is_fan_of_sports, false) as is_fan_of_sports,
        coalesce(users.is_fan_of_theatre, false) as is_fan_of_theatre,
        coalesce(users.is_fan_of_concerts, false) as is_fan_of_concerts,
        coalesce(users.is_fan_of_jazz, false) as is_fan_of_jazz,
        coalesce(users.is_fan_of_classical, false) as is_fan_of_classical,
        coalesce(users.is_fan_of_opera, false) as is_fan_of_opera,
        coalesce(users.is_fan_of_rock, false) as is_fan_of_rock,
        coalesce(users.is_fan_of_vegas, false) as is_fan_of_vegas,
        coalesce(users.is_fan_of_broadway, false) as is_fan_of_broadway,
        coalesce(users.is_fan_of_musicals, false) as is_fan_of_musicals
    from users
    left join buyers
        on users.user_id = buyers.user_id
    where buyers.user_id is null

)

select * from final
