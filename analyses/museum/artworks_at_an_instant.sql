-- The artworks in the museum at an instant and now, by classification.
{% set instant = "cast('2026-12-31 12:00:00' as timestamp)" %}

with

earlier as (

    {{ state_as_of(ref("int_moma__artworks_history"), instant) }}

),

now as (

    select * from {{ ref("int_moma__artworks_current") }}

),

counts as (

    select
        coalesce(classification, 'Unknown') as classification,
        count(*) as earlier_count,
        0 as now_count
    from earlier
    group by coalesce(classification, 'Unknown')
    union all
    select
        coalesce(classification, 'Unknown') as classification,
        0 as earlier_count,
        count(*) as now_count
    from now
    group by coalesce(classification, 'Unknown')

),

final as (

    select
        classification,
        sum(earlier_count) as earlier_count,
        sum(now_count) as now_count
    from counts
    group by classification

)

select * from final
order by classification
