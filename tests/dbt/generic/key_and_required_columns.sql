{#- The key is unique, and no required column is null (see `required_columns`): both in one scan.
    Returns one row for each key that breaks this, with its number of rows and of nulls by column. -#}
{% test key_and_required_columns(model, key, columns_where={}) %}

{{ null_and_doubled_rows(model, columns_where, key) }}

{% endtest %}
