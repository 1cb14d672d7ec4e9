{#- Here, as dbt 1.10 takes no `config` of a singular test from YAML. -#}
{{ config(severity="warn") }}

select
    {{ stream_of_topic("kafka_topic") }} as stream_name,
    kafka_topic,
    stage,
    error_class,
    open_count,
    sample_partition,
    sample_offset,
    sample_message
from {{ ref("rpt_quarantine") }}
where open_count > 0 and {{ stream_of_topic("kafka_topic") }} is not null
