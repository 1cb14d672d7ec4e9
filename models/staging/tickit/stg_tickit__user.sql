with

changes as (

    {{ captured_changes("tickit", "user") }}

),

final as (

    select
        -- keys
        record_key,
        userid as user_id,

        -- attributes
        {{ trimmed_text("username", 32) }} as username,
        {{ trimmed_text("firstname", 128) }} as first_name,
        {{ trimmed_text("lastname", 128) }} as last_name,
        {{ trimmed_text("city", 128) }} as city,
        {{ trimmed_text("state", 8) }} as state,
        {{ trimmed_text("email", 512) }} as email,
        {{ trimmed_text("phone", 64) }} as phone,

        -- flags
        likesports as is_fan_of_sports,
        liketheatre as is_fan_of_theatre,
        likeconcerts as is_fan_of_concerts,
        likejazz as is_fan_of_jazz,
        likeclassical as is_fan_of_classical,
        likeopera as is_fan_of_opera,
        likerock as is_fan_of_rock,
        likevegas as is_fan_of_vegas,
        likebroadway as is_fan_of_broadway,
        likemusicals as is_fan_of_musicals,

        {{ columns_of_change() }}
    from changes

)

select * from final
