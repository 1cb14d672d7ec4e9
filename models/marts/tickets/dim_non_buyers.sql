{{ config(dist="user_id", sort="user_id") }}

with

users as (

    select * from {{ ref("dim_ticket_users") }}

),

final as (

    select
        -- keys
        user_id,

        -- attributes
        username,
        full_name,
        city,
        state,
        email,
        phone,

        -- flags
        is_fan_of_sports,
        is_fan_of_theatre,
        is_fan_of_concerts,
        is_fan_of_jazz,
        is_fan_of_classical,
        is_fan_of_opera,
        is_fan_of_rock,
        is_fan_of_vegas,
        is_fan_of_broadway,
        is_fan_of_musicals
    from users
    where not is_buyer

)

select * from final
