select
    bronze_table,
    kafka_topic,
    kafka_topic_id,
    kafka_partition,
    first_offset,
    last_offset,
    duplicate_count
from {{ ref("rpt_ingest_ledger") }}
where duplicate_count > 0
