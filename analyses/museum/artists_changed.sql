-- What changed in the list of artists between two instants: before, and then.
{% set from_instant = "cast('2026-01-01 00:00:00' as timestamp)" %}
{% set to_instant = "cast('2026-12-31 12:00:00' as timestamp)" %}

with

changed as (

    {{ changes_between(
        ref("int_moma__artists_history"),
        ["artist_id"],
        from_instant,
        to_instant
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
