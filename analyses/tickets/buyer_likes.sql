-- What the users like who bought tickets, by kind of event.
{% set kinds = [
    "sports", "theatre", "concerts", "jazz", "classical",
    "opera", "rock", "vegas", "broadway", "musicals",
] %}

with

buyers as (

    select * from {{ ref("int_tickets__buyers_extracted") }}

),

likes as (

    {% for kind in kinds %}
        select
            {{ loop.index }} as kind_number,
            '{{ kind }}' as event_kind,
            sum(case when is_fan_of_{{ kind }} then 1 else 0 end) as fan_count
        from buyers
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
