"""Running streams: batches, supervision with retries, progress and metrics."""
