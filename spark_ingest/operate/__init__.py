"""Operation of streams: verify, backfill, recover, maintain, compare columns."""
