{#- No two rows are equal in all of the columns. For a key of several columns, if
    `key_and_required_columns` would test more than it should. -#}
{% test unique_combination(model, columns) %}

select
    {{ columns | join(", ") }},
    count(*) as row_count
from {{ model }}
group by {{ columns | join(", ") }}
having count(*) > 1

{% endtest %}
