{#- No required column is null. Returns one row with the number of nulls by column, or none.
    Columns with a not_null constraint are required; so are those of `columns_where`, in the rows
    where their condition is true. -#}
{% test required_columns(model, columns_where={}) %}

{{ null_and_doubled_rows(model, columns_where) }}

{% endtest %}
