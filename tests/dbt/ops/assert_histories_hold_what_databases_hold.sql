select
    stream_name,
    reconciled_at,
    source_row_count,
    held_row_count,
    row_difference
from {{ ref("rpt_reconciliation") }}
where is_newest and reconciliation_state = 'different'
