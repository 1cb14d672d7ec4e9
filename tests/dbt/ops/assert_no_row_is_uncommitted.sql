select
    bronze_table,
    kafka_topic,
    kafka_topic_id,
    kafka_partition,
    first_offset,
    last_offset,
    uncommitted_count
from {{ ref("rpt_ingest_ledger") }}
where uncommitted_count > 0
