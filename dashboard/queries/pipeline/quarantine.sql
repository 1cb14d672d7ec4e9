-- Quarantine by reason
select
    kafka_topic,
    stage,
    error_class,
    sum(open_count) as open_count,
    sum(record_count) as record_count,
    max(last_seen_at) as last_seen_at
from marts.rpt_quarantine
group by kafka_topic, stage, error_class
order by open_count desc, kafka_topic asc, stage asc, error_class asc
