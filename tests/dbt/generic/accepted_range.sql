{#- No value is less than `min_value` or greater than `max_value`. Returns one row per value outside
    the range, with its number of rows. Nulls are ignored. -#}
{% test accepted_range(model, column_name, min_value=none, max_value=none) %}

select
    {{ column_name }},
    count(*) as row_count
from {{ model }}
where
    1 = 0
    {% if min_value is not none %}
        or {{ column_name }} < {{ min_value }}
    {% endif %}
    {% if max_value is not none %}
        or {{ column_name }} > {{ max_value }}
    {% endif %}
group by {{ column_name }}

{% endtest %}
