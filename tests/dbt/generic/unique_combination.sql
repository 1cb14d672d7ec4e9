{#- No two rows are equal in all of the columns: the key of a table whose key is more than
    one column, and where `key_and_required_columns` would ask for more. -#}
{% test unique_combination(model, columns) %}

select
    {{ columns | join(", ") }},
    count(*) as row_count
from {{ model }}
group by {{ columns | join(", ") }}
having count(*) > 1

{% endtest %}
