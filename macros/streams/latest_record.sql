{#- Within one partition Kafka's own order decides, whatever the clocks of the producers; the
    later commit, where an ingest wrote one record twice. -#}
{% macro latest_in_partition() -%}
    _kafka_offset desc, _commit_id desc
{%- endmacro %}

{#- Partitions have no order between them: of the last records of each, what moved (another
    key, a recreated topic) goes by time, and by position where two times are equal. -#}
{% macro latest_of_partitions() -%}
    _kafka_timestamp desc, _kafka_topic_id desc, _kafka_partition desc, _kafka_offset desc
{%- endmacro %}
