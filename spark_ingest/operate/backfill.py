"""Backfill: land the records before a stream's start offsets; the stream may be running.

The newest records are landed first, so that the committed offsets stay contiguous and a killed
backfill resumes below them. A chunk is staged as a batch of the stream is, but on a branch of its
own; its invalid records go to quarantine, then the valid ones are published. If the stream commits
first, the chunk is staged again, in smaller pieces.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import DataFrame

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind, own_snapshots
from spark_ingest.commits.offsets import Ranges, Span, below, newest, total, within
from spark_ingest.commits.resume import Position, position_of, topic_recreated
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.connect.broker import Topic, consumer_options, reader_options
from spark_ingest.errors import CommitRefused, MillraceError
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm
from spark_ingest.records import out_of_range
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.batch_size import MOST_BYTES, PROBE, BatchSize, record_bytes
from spark_ingest.streaming.progress import BatchReport
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.side_commit import SideBranch, stage_beside
from spark_ingest.streaming.staged_batch import Stager
from spark_ingest.streaming.supervise import Stopping

# For fewer records the fixed cost of a commit dominates.
_SMALLEST_PIECE = 1000
_Read = Callable[[Ranges], DataFrame]


@dataclass(frozen=True)
class BackfillSettings:
    """How a backfill runs.

    Attributes:
        max_records: Maximum records per chunk.
        unknown_wait: Seconds from the start of a chunk until a schema id that the registry does
            not know counts as unknown.
        max_rate: Maximum records per second; None for no limit.
        max_bytes: Maximum bytes per chunk, estimated from earlier records.
    """

    max_records: int
    unknown_wait: float
    max_rate: int | None = None
    max_bytes: int = MOST_BYTES


def missing_before(
    services: Services, stream: Stream, topic: Topic, floor: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """By partition, the offsets ``(first, end)`` before the first committed one.

    The stream's table must exist. ``floor`` is the lowest offset, by partition; offsets that the
    broker has deleted are not included.

    Raises:
        MillraceError: The table has no commit, or the topic was recreated.
    """
    here = position_of(services.spark, stream)
    if here.topic_id is None:
        raise MillraceError(
            f"{stream.table} has no commit yet, so there is nothing to backfill: "
            "land some records with `spark-ingest run` first"
        )
    if here.topic_id != topic.id:
        raise topic_recreated(stream, here.topic_id, topic.id)
    oldest = services.broker.first_offsets(topic)
    found = {}
    for p, spans in commit_log.committed_ranges(services.spark, stream, topic).spans().items():
        first = max(floor.get(p, 0), oldest.get(p, 0))
        if spans and first < spans[0][0]:
            found[p] = (first, spans[0][0])
    return found


def backfill(
    services: Services,
    stream: Stream,
    floor: Mapping[int, int],
    settings: BackfillSettings,
    stopping: threading.Event,
) -> int:
    """Land the records before a stream's first offsets; the stream may be running.

    The stream's table must exist; ``floor`` is the lowest offset, by partition. After
    ``stopping`` is set the current commit is finished. Returns the number of committed offsets.

    Raises:
        MillraceError: The table has no commit, or the topic was recreated.
        ServiceUnavailable: The broker or the registry does not answer.
        CommitRefused: The running stream committed first at each attempt.
    """
    topic = services.broker.existing_topic(stream.topic, stream.name)
    work = _Backfill(services, stream, topic, settings, stopping)
    try:
        return work.run(missing_before(services, stream, topic, floor))
    finally:
        work.close()


class _Backfill:
    def __init__(
        self,
        services: Services,
        stream: Stream,
        topic: Topic,
        settings: BackfillSettings,
        stopping: threading.Event,
    ) -> None:
        self._services = services
        self._spark = services.spark
        self._stream = stream
        self._topic = topic
        self._settings = settings
        self._stopping = stopping
        self._size = BatchSize(settings.max_bytes)
        schemas = Schemas(services.registry, stream, settings.unknown_wait, self._wait)
        options = consumer_options(services.connections, len(topic.partitions))
        note = services.progress.note
        self._stager = Stager(services.spark, stream, topic, schemas, options, note)
        self._uuid = uuid_of(Jvm(services.spark), stream.table)
        # Up to this commit id no other backfill has landed the remaining offsets.
        self._checked = position_of(services.spark, stream).commit_id

    def close(self) -> None:
        """Close its consumer."""
        self._stager.close()

    def run(self, todo: dict[int, tuple[int, int]]) -> int:
        """Land chunk after chunk, newest first; return the number of committed offsets."""
        done = 0
        started = time.monotonic()
        while todo and not self._stopping.is_set():
            most = min(total(todo), self._settings.max_records)
            fitting = self._size.fitting(most, partial(self._record_bytes, todo))
            chunk = newest(todo, fitting)
            todo = below(todo, chunk)
            try:
                done += self._take_chunk(chunk, total(todo))
            except Stopping:
                break
            if self._settings.max_rate is not None:
                ahead = done / self._settings.max_rate - (time.monotonic() - started)
                self._stopping.wait(max(ahead, 0.0))
        return done

    def _record_bytes(self, todo: Ranges) -> float | None:
        """Mean bytes of a record, from the newest ones."""
        return record_bytes(self._read(newest(todo, PROBE)))

    def _take_chunk(self, chunk: Ranges, behind: int) -> int:
        """Land a chunk, in parts if Spark cannot read all of it; return committed offsets."""
        try:
            return self._take(chunk, self._read, behind)
        except JAVA_ERRORS as error:
            if not out_of_range.may_be_cause_of(error):
                raise
            found = self._find(chunk)
            if not found:
                raise
        self._services.progress.note(f"{self._stream.name}: {out_of_range.note(found)}")
        done = 0
        for part, is_unreadable in out_of_range.parts(chunk, found, newest_first=True):
            if self._stopping.is_set():
                break
            read = self._read_odd if is_unreadable else self._read
            done += self._take(part, read, behind + total(chunk) - done - total(part))
        return done

    def _find(self, chunk: Ranges) -> dict[int, list[Span]]:
        """The offset ranges of a chunk that Spark cannot read."""

        def check() -> None:
            if self._stopping.is_set():
                raise Stopping

        return out_of_range.find(self._services.broker, self._topic.name, chunk, check)

    def _read_odd(self, part: Ranges) -> DataFrame:
        """The records of a part that Spark cannot read."""
        return out_of_range.rows(self._spark, self._services.broker, self._topic.name, part)

    def _take(self, chunk: Ranges, read: _Read, behind: int) -> int:
        """Land a chunk; return committed offsets."""
        left, size = dict(chunk), total(chunk)
        while left and not self._stopping.is_set():
            batch, attempts = self._publish(left, size, read)
            piece = batch.commit.ranges
            left, size = below(left, piece), total(piece) * (2 if attempts == 1 else 1)
            self._remove_uncommitted(piece, batch.started_at)
            self._report(batch, behind + total(left))
        return total(chunk) - total(left)

    def _publish(self, left: Ranges, size: int, read: _Read) -> tuple[BatchResult, int]:
        """Publish the newest remaining offsets: half as many each time the stream commits first.

        Returns the result, and the number of attempts.
        """
        attempts: list[BatchResult] = []

        def stage(here: Position, branch: SideBranch) -> Commit:
            if attempts and attempts[-1].quarantined:
                # Decided again below, perhaps with another schema.
                quarantine_table.remove_batch(self._spark, self._topic, attempts[-1].started_at)
            began = datetime.now(UTC)
            self._check_other_backfills(here, left)
            piece = newest(left, max(size >> len(attempts), _SMALLEST_PIECE))
            commit = Commit(
                here.commit_id + 1,
                self._topic.id,
                {p: first for p, (first, _) in piece.items()},
                {p: end for p, (_, end) in piece.items()},
                CommitKind.BACKFILL,
                here.offsets,
            )
            staged = self._stager.stage(read(piece), commit, began, branch)
            staged.append_quarantine(began)
            attempts.append(staged.result(commit, began, 0))
            return commit

        stage_beside(self._spark, self._stream, self._uuid, stage)
        batch = attempts[-1]
        self._checked = batch.commit.id
        seconds = (datetime.now(UTC) - batch.started_at).total_seconds()
        return replace(batch, seconds=seconds), len(attempts)

    def _check_other_backfills(self, here: Position, left: Ranges) -> None:
        """Check that no other backfill has landed the remaining offsets.

        Raises:
            CommitRefused: Another one has.
        """
        jvm = Jvm(self._spark)
        since = [
            own.commit
            for own in own_snapshots(jvm, self._stream.table, after=self._checked)
            if own.commit.id <= here.commit_id
        ]
        # The commit log has them if maintenance has expired their snapshots.
        unclear = len(since) < here.commit_id - self._checked
        if unclear or any(commit.kind is CommitKind.BACKFILL for commit in since):
            committed = commit_log.committed_ranges(self._spark, self._stream, self._topic)
            for p, spans in committed.spans().items():
                first, end = left.get(p, (0, 0))
                if any(a < end and first < b for a, b in spans):
                    raise CommitRefused(
                        f"{self._stream.table}: another backfill landed the same records: "
                        "wait until it has finished"
                    )
        self._checked = here.commit_id

    def _read(self, chunk: Ranges) -> DataFrame:
        """Read the records of a chunk with Spark's Kafka source."""
        # Spark requires all partitions: those without offsets get an empty range.
        empty = self._services.broker.first_offsets(self._topic)
        ranges = {p: chunk.get(p, (first, first)) for p, first in empty.items()}
        options = reader_options(
            self._services.connections,
            self._topic,
            {p: first for p, (first, _) in ranges.items()},
            self._settings.max_records,
        )
        del options["maxOffsetsPerTrigger"]
        ends = {str(p): end for p, (_, end) in ranges.items()}
        options["endingOffsets"] = json.dumps({self._topic.name: ends})
        return self._spark.read.format("kafka").options(**options).load()

    def _report(self, batch: BatchResult, behind: int) -> None:
        self._size.learn(batch.rows + batch.quarantined, batch.value_bytes + batch.other_bytes)
        commit_log.log_commit(self._spark, self._stream, batch)
        self._services.progress.batch(
            BatchReport(
                stream=self._stream.name,
                table=self._stream.table,
                commit_id=batch.commit.id,
                rows=batch.rows,
                quarantined=batch.quarantined,
                value_bytes=batch.value_bytes,
                seconds=batch.seconds,
                lag=behind,
            )
        )

    def _remove_uncommitted(self, published: Ranges, began: datetime) -> None:
        """Remove uncommitted quarantine rows of published offsets from earlier attempts.

        Also those that were committed, or replayed, into a table that was dropped since. Must run
        after publishing: before it, another writer could lose rows that it is about to publish.
        """
        where = (
            f"_kafka_topic = '{self._topic.name}' and _kafka_topic_id = '{self._topic.id}' "
            f"and {within(published)} "
            f"and _ingested_at <> timestamp '{began:%Y-%m-%d %H:%M:%S.%f} UTC'"
        )
        table = f"{CATALOG}.{quarantine_table.TABLE}"
        if self._spark.table(table).where(where).limit(1).count():
            table_change.rewrite(lambda: self._spark.sql(f"delete from {table} where {where}"))

    def _wait(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise Stopping
