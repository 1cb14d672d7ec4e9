with

changes as (

    {{ captured_changes("pagila", "language") }}

),

final as (

    select
        -- keys
        record_key,
        language_id,

        -- attributes
        {{ trimmed_text("name", 128) }} as language_name,

        -- times
        {{ timestamp_from_zoned("last_update") }} as updated_at,

        {{ columns_of_change() }}
    from changes

)

select * from final
