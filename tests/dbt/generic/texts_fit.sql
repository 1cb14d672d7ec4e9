{#- No text of bronze has more bytes than its type in staging: Spark keeps a longer one whole,
    Redshift cuts it, and the engines would differ. A failure names the record: give the column
    more in staging, in the contracts of the marts and here.

    max_bytes: By column, how many bytes staging lets it have; of a field of a struct, by
    `records.` and its path. -#}
{% test texts_fit(model, max_bytes) %}

select
    _kafka_topic,
    _kafka_partition,
    _kafka_offset
from {{ model }} as records
where
    {% for column, most in max_bytes.items() %}
        {{ "or " if not loop.first }}octet_length(rtrim({{ column }})) > {{ most }}
    {% endfor %}

{% endtest %}
