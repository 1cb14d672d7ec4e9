{#- No text in bronze has more bytes than its type in staging, without trailing blanks: Spark would
    keep a longer text whole and Redshift would truncate it, so the engines would differ. Returns
    the records: increase the length in staging, in the contracts of the marts and in this test.

    max_bytes: The number of bytes of each column's type in staging; a field of a struct is
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
