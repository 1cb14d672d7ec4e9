{#- The key is unique, and no required column is null (see `required_columns`): both in one scan.
    Returns one row per required column with nulls, with their number, and one for the key, with the
    number of rows that share a key and one such key as an example. -#}
{% test key_and_required_columns(model, key, columns_where={}) %}

{{ null_and_doubled_rows(model, columns_where, key) }}

{% endtest %}
