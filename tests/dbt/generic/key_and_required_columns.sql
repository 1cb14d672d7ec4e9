{#- No two rows are equal in all columns of the key, and no required column is null, as
    `required_columns` finds it: together these two cost as much as one of them. A row for each
    column that is null, and one for the key, with how many rows share theirs and an example. -#}
{% test key_and_required_columns(model, key, columns_where={}) %}

{{ null_and_doubled_rows(model, columns_where, key) }}

{% endtest %}
