{#- Within a partition Kafka's order decides, not the clocks of producers; the later commit, if
    ingest wrote a record twice. -#}
{% macro latest_in_partition() -%}
    _kafka_offset desc, _commit_id desc
{%- endmacro %}

{#- Partitions have no order between them: if a key has records in several (its record key
    changed, the topic was recreated), the timestamp decides, then the position. -#}
{% macro latest_of_partitions() -%}
    _kafka_timestamp desc, _kafka_topic_id desc, _kafka_partition desc, _kafka_offset desc
{%- endmacro %}
