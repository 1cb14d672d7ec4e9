{#- The engine's own implementation and the default one must agree. -#}
{% set counts = [1, 2, 37] %}

with

answers as (

    {% for count in counts %}
        select
            {{ count }} as expected_count,
            count(*) as number_count,
            count(distinct whole_number) as distinct_count,
            min(whole_number) as lowest,
            max(whole_number) as highest
        from (
            {{ whole_numbers(count) }}
        ) as numbers
        union all
        select
            {{ count }} as expected_count,
            count(*) as number_count,
            count(distinct whole_number) as distinct_count,
            min(whole_number) as lowest,
            max(whole_number) as highest
        from (
            {{ default__whole_numbers(count) }}
        ) as numbers
        {% if not loop.last %}
            union all
        {% endif %}
    {% endfor %}

)

select
    expected_count,
    number_count,
    distinct_count,
    lowest,
    highest
from answers
where
    number_count <> expected_count
    or distinct_count <> expected_count
    or lowest <> 0
    or highest <> expected_count - 1
