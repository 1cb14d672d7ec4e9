-- What the users like who never bought a ticket, by kind of event.
{% set kinds = [
    "sports", "theatre", "concerts", "jazz", "classical",
    "opera", "rock", "vegas", "broadway", "musicals",
] %}

with

non_buyers as (

    select * from {{ ref("dim_non_buyers") }}

),

likes as (

    {% for kind in kinds %}
        select
            {{ loop.index }} as kind_number,
            '{{ kind }}' as event_kind,
            sum(case when is_fan_of_{{ kind }} then 1 else 0 end) as fan_count
        from non_buyers
        {{ "union all" if not loop.last }}
    {% endfor %}

),

final as (

    select
        kind_number,
        event_kind,
        fan_count
    from likes

)

select * from final
order by
    fan_count desc,
    kind_number asc
