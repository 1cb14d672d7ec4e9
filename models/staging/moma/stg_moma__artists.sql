with

changes as (

    {{ captured_changes("moma", "artists") }}

),

final as (

    select
        -- keys
        record_key,
        artist_id,

        -- attributes
        {{ trimmed_text("name", 256) }} as artist_name,
        {{ trimmed_text("nationality", 64) }} as nationality,
        {{ trimmed_text("gender", 32) }} as gender,

        -- numbers
        birth_year,
        death_year,

        {{ columns_of_change() }}
    from changes

)

select * from final
