with

changes as (

    {{ captured_changes("pagila", "address") }}

),

final as (

    select
        -- keys
        record_key,
        address_id,
        city_id,

        -- attributes
        {{ trimmed_text("address", 256) }} as street_address,
        {{ trimmed_text("address2", 256) }} as street_address_2,
        {{ trimmed_text("district", 128) }} as address_district,
        {{ trimmed_text("postal_code", 64) }} as postal_code,
        {{ trimmed_text("phone", 128) }} as phone,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
