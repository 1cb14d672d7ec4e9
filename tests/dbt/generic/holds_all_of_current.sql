{#- The fact of a captured table has every row currently in the database, and no other.

    current: The model with the table's current rows. key: The key column of both. same: Other
    columns that must be equal. -#}
{% test holds_all_of_current(model, current, key, same=[]) %}

select
    state.{{ key }} as state_{{ key }},
    actual.{{ key }} as actual_{{ key }}
from {{ current }} as state
full outer join {{ model }} as actual
    on state.{{ key }} = actual.{{ key }}
where
    state.{{ key }} is null
    or actual.{{ key }} is null
    {% for column in same %}
        or not coalesce(
            state.{{ column }} = actual.{{ column }},
            state.{{ column }} is null and actual.{{ column }} is null
        )
    {% endfor %}

{% endtest %}
