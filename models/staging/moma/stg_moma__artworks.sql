with

changes as (

    {{ captured_changes("moma", "artworks") }}

),

final as (

    select
        -- keys
        record_key,
        artwork_id,
        artist_id,

        -- attributes
        {{ trimmed_text("title", 4096) }} as artwork_title,
        {{ trimmed_text("date_text", 128) }} as date_text,
        {{ trimmed_text("medium", 4096) }} as medium,
        {{ trimmed_text("dimensions", 4096) }} as dimensions,
        {{ trimmed_text("credit", 4096) }} as credit,
        {{ trimmed_text("department", 128) }} as department,
        {{ trimmed_text("classification", 64) }} as classification,
        {{ trimmed_text("object_number", 64) }} as object_number,

        -- numbers
        diameter_cm,
        circumference_cm,
        height_cm,
        length_cm,
        width_cm,
        depth_cm,
        weight_kg,
        duration_seconds,

        -- flags
        is_catalogued,

        -- times
        {{ date_from_days("acquisition_date") }} as acquisition_date,
        {{ timestamp_from_zoned("updated_at") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
