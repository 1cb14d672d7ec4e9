-- Ledger
-- What Kafka sent, and where each record is.
select
    bronze_table,
    sum(offset_count) as sent_count,
    sum(bronze_row_count) as bronze_count,
    sum(quarantined_count) as quarantined_count,
    sum(empty_count) as empty_count,
    sum(gap_count) as missing_count,
    sum(duplicate_count) as doubled_count,
    max(last_committed_at) as last_committed_at
from marts.rpt_ingest_ledger
group by bronze_table
order by bronze_table
