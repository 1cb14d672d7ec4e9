"""What people run beside the streams: verify, backfill, recover, maintain, compare columns."""
