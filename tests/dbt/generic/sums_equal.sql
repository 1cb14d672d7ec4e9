{#- The totals of a model equal those of its source rows, to the cent. Returns one row per group
    whose totals differ or that only one of the two has.

    of: The source rows. sums: The aggregate of the source rows that each summed column of the model
    must equal. by: The column of the source rows for each grouping column of the model; without
    it, all rows are one group. -#}
{% test sums_equal(model, of, sums, by={}) %}

{%- set groups = by or {"'all'": "'all'"} %}

with

actual as (

    select
        {% for mine in groups %}
            {{ mine }} as group_{{ loop.index }},
        {% endfor %}
        {% for mine in sums %}
            coalesce(sum({{ mine }}), 0) as {{ mine }}{{ "," if not loop.last }}
        {% endfor %}
    from {{ model }}
    {% if by %}
        group by {{ by.keys() | join(", ") }}
    {% endif %}

),

expected as (

    select
        {% for theirs in groups.values() %}
            {{ theirs }} as group_{{ loop.index }},
        {% endfor %}
        {% for mine, theirs in sums.items() %}
            coalesce({{ theirs }}, 0) as {{ mine }}{{ "," if not loop.last }}
        {% endfor %}
    from {{ of }}
    {% if by %}
        group by {{ by.values() | join(", ") }}
    {% endif %}

)

select
    {% for place in range(1, (groups | length) + 1) %}
        actual.group_{{ place }} as actual_group_{{ place }},
        expected.group_{{ place }} as expected_group_{{ place }},
    {% endfor %}
    {% for mine in sums %}
        actual.{{ mine }} as actual_{{ mine }},
        expected.{{ mine }} as expected_{{ mine }}{{ "," if not loop.last }}
    {% endfor %}
from actual
full outer join expected
    on
        {% for place in range(1, (groups | length) + 1) %}
            {{ "and " if not loop.first }}actual.group_{{ place }} = expected.group_{{ place }}
        {% endfor %}
where
    actual.group_1 is null
    or expected.group_1 is null
    {% for mine in sums %}
        or actual.{{ mine }} <> expected.{{ mine }}
    {% endfor %}

{% endtest %}
