{#- No required column is null: a row for each one that is, with how often. Required are the
    columns with a not_null constraint, and others where a condition holds. -#}
{% test required_columns(model, columns_where={}) %}

{{ null_and_doubled_rows(model, columns_where) }}

{% endtest %}
