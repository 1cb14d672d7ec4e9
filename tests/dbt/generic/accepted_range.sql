{#- No value is less than `min_value` or greater than `max_value`; a row for each one that is, with
    how often. A null is no value. -#}
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
