{#- A fact of a captured table has each row currently in the database, and no other. current: Its
    current state. key: The column that names a row in both. same: Columns that agree besides. -#}
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
