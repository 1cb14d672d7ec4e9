"""Takes a table for a test, as a stream does."""

from __future__ import annotations

from spark_ingest.commits.lease import Lease
from spark_ingest.commits.renewals import Renewals
from spark_ingest.lake.jvm import Jvm


def take(jvm: Jvm, table: str, writer_id: str | None = None) -> Lease:
    """Become the writer of a table; the lease is not renewed."""
    return Lease.take(jvm, table, Renewals(jvm), writer_id)
