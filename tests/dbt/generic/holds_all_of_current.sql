{#- A fact of a captured table has each row that the database holds now, and no other.

    current: Its current state. key: The column that names a row in both. same: Columns that agree
    besides. -#}
{% test holds_all_of_current(model, current, key, same=[]) %}

select
    state.{{ key }} as state_{{ key }},
    held.{{ key }} as held_{{ key }}
from {{ current }} as state
full outer join {{ model }} as held
    on state.{{ key }} = held.{{ key }}
where
    state.{{ key }} is null
    or held.{{ key }} is null
    {% for column in same %}
        or not coalesce(
            state.{{ column }} = held.{{ column }},
            state.{{ column }} is null and held.{{ column }} is null
        )
    {% endfor %}

{% endtest %}
