"""Exactly-once batches: stage the rows, quarantine bad records, publish in one commit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from spark_ingest.commits import quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.resume import topic_recreated
from spark_ingest.connect.broker import Topic, consumer_options
from spark_ingest.errors import LeaseLost, PersonNeeded
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.staged_batch import Stager


class BatchWriter:
    """Writes the batches of one stream under its lease."""

    def __init__(
        self, services: Services, stream: Stream, topic: Topic, lease: Lease, schemas: Schemas
    ) -> None:
        """Write batches of the stream under the lease."""
        self._services = services
        self._stream = stream
        self._topic = topic
        self._lease = lease
        options = consumer_options(services.connections, len(topic.partitions))
        note = services.progress.note
        self._stager = Stager(services.spark, stream, topic, schemas, options, note)

    def close(self) -> None:
        """Close the consumer; a later :meth:`write` opens a new one."""
        self._stager.close()

    def write(
        self, records: DataFrame, number: int, starts: Mapping[int, int], ends: Mapping[int, int]
    ) -> BatchResult:
        """Write and publish one batch.

        Args:
            records: Rows of Spark's Kafka source, with headers.
            number: The commit id.
            starts: Start offset by partition, inclusive.
            ends: End offset by partition, exclusive.

        Raises:
            LeaseLost: Another writer took the table over; nothing was committed.
            CommitRefused: The table changed concurrently; nothing was committed.
            ServiceUnavailable: The registry is unavailable; nothing was committed.
            PersonNeeded: The topic was recreated during the read; nothing was committed.
        """
        began, clock = datetime.now(UTC), time.monotonic()
        commit = Commit(number, self._topic.id, dict(starts), dict(ends))
        staged = self._stager.stage(records, commit, began, self._lease)
        self._check_topic()
        if staged.quarantine is not None:
            self._lease.check()
            staged.append_quarantine(began)
        try:
            self._lease.publish()
        except LeaseLost:
            # The new writer of the table quarantines these records itself: avoid duplicates.
            quarantine_table.remove_batch(self._services.spark, self._topic, began)
            raise
        return staged.result(commit, began, time.monotonic() - clock)

    def _check_topic(self) -> None:
        now = self._services.broker.existing_topic(self._stream.topic, self._stream.name)
        if now.id != self._topic.id:
            raise PersonNeeded(str(topic_recreated(self._stream, self._topic.id, now.id)))
