{#- No two rows are equal in all of the columns: the key of a table whose key is more than
    one column. -#}
{% test unique_combination(model, columns) %}

select
    {{ columns | join(", ") }},
    count(*) as row_count
from {{ model }}
group by {{ columns | join(", ") }}
having count(*) > 1

{% endtest %}
