-- Lag of each stream
-- Seconds from Kafka to bronze, by the hour in which the records came.
select
    bronze_table,
    hour_start_at,
    kafka_to_ingest_average_seconds,
    kafka_to_ingest_max_seconds,
    bronze_row_count
from marts.rpt_ingest_freshness
order by bronze_table, hour_start_at
