-- What changed in the list of artists within the last day: before, and now.

with

changed as (

    {{ changes_between(
        ref("int_moma__artists_versioned"),
        ["artist_id"],
        dbt.dateadd("day", -1, dbt.current_timestamp()),
        dbt.current_timestamp()
    ) }}

),

final as (

    select
        artist_id,
        artist_name,
        nationality,
        birth_year,
        death_year,
        is_before,
        valid_from_at
    from changed

)

select * from final
order by artist_id, valid_from_at
