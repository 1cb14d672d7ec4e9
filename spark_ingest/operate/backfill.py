"""Backfill: land the records before a stream's start offsets; the stream may be running.

The newest records are landed first, so that the committed offsets stay contiguous and a killed
backfill resumes below them. Each chunk is read and decoded once; its invalid records go to
quarantine, then the valid ones are published, in smaller pieces if the stream commits first.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind, own_snapshots
from spark_ingest.commits.offsets import Ranges, Span, below, newest, total, within
from spark_ingest.commits.resume import Position, position_of, topic_recreated
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.connect.broker import Topic, reader_options
from spark_ingest.errors import CommitRefused, MillraceError
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm
from spark_ingest.records import out_of_range, validation
from spark_ingest.records.bronze_rows import grow_table, table_rows, validate_with_registry
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.records.validation import Validated
from spark_ingest.sources import Stream
from spark_ingest.streaming.batch_size import (
    MOST_BYTES,
    PROBE,
    BatchSize,
    key_and_header_bytes,
    record_bytes,
)
from spark_ingest.streaming.progress import BatchReport
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.side_commit import commit_beside
from spark_ingest.streaming.supervise import Stopping

# For fewer records the fixed cost of a commit dominates.
_SMALLEST_PIECE = 1000


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
    return work.run(missing_before(services, stream, topic, floor))


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
        self._schemas = Schemas(services.registry, stream, settings.unknown_wait, self._wait)
        self._uuid = uuid_of(Jvm(services.spark), stream.table)
        # Up to this commit id no other backfill has landed the remaining offsets.
        self._checked = position_of(services.spark, stream).commit_id

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
            return self._take(chunk, self._read(chunk), behind)
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
            rows = self._read_odd(part) if is_unreadable else self._read(part)
            done += self._take(part, rows, behind + total(chunk) - done - total(part))
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

    def _take(self, chunk: Ranges, records: DataFrame, behind: int) -> int:
        """Quarantine a chunk's invalid records and publish it; return committed offsets."""
        began, done, left = datetime.now(UTC), 0, dict(chunk)
        with self._validated(records) as validated:
            grow_table(self._spark, self._stream.table, validated.schema())
            bad = validated.records.where("_error is not null").select(
                *quarantine_table.rows("_error", F.lit(began))
            )
            if bad.limit(1).count():
                quarantine_table.append(bad)
            size = total(chunk)
            while left and not self._stopping.is_set():
                clock = time.monotonic()
                piece, commit, size = self._publish(validated, left, size, began)
                left = below(left, piece)
                done += total(piece)
                seconds = time.monotonic() - clock
                self._report(validated, commit, began, seconds, behind + total(left))
        self._remove_uncommitted(chunk, left, began)
        return done

    def _publish(
        self, validated: Validated, left: Ranges, count: int, began: datetime
    ) -> tuple[dict[int, tuple[int, int]], Commit, int]:
        """Publish the newest remaining offsets: half as many each time the stream commits first.

        Returns the published ranges, their commit, and the number of offsets to try next.
        """
        pieces: list[dict[int, tuple[int, int]]] = []

        def make(here: Position) -> tuple[DataFrame, Commit]:
            self._check_other_backfills(here, left)
            piece = newest(left, max(count >> len(pieces), _SMALLEST_PIECE))
            pieces.append(piece)
            commit = Commit(
                here.commit_id + 1,
                self._topic.id,
                {p: first for p, (first, _) in piece.items()},
                {p: end for p, (_, end) in piece.items()},
                CommitKind.BACKFILL,
                here.offsets,
            )
            good = validated.records.where(F.expr(within(piece)) & F.col("_error").isNull())
            rows = table_rows(good, validated.columns, self._stream.table, commit.id, began)
            return rows, commit

        commit = commit_beside(self._spark, self._stream, self._uuid, make)
        if commit is None:
            raise AssertionError("make always gives rows")
        self._checked = commit.id
        fitting = total(pieces[-1])
        return pieces[-1], commit, fitting * 2 if len(pieces) == 1 else fitting

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

    @contextmanager
    def _validated(self, records: DataFrame) -> Iterator[Validated]:
        """A chunk's validated records, persisted on disk because they are read repeatedly."""
        parts = ["value", "key"] if self._stream.ingest.key else ["value"]
        begun = time.monotonic()
        while True:
            validated = validate_with_registry(records, self._topic.id, self._schemas)
            persisted = validated.records.persist(StorageLevel.DISK_ONLY)
            try:
                (row,) = persisted.agg(
                    *(F.collect_set(validation.unknown_id(part)) for part in parts)
                ).collect()
                unknown = dict(zip(parts, row, strict=True))
                if sum(self._schemas.learn(ids, part, begun) for part, ids in unknown.items()):
                    continue
                yield replace(validated, records=persisted)
                return
            finally:
                persisted.unpersist()

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

    def _report(
        self, validated: Validated, commit: Commit, began: datetime, seconds: float, behind: int
    ) -> None:
        ranges = {p: (commit.starts[p], end) for p, end in commit.ends.items()}
        (row,) = (
            validated.records.where(within(ranges))
            .agg(
                F.count_if(F.col("_error").isNull()),
                F.count_if(F.col("_error").isNotNull()),
                F.coalesce(F.sum(F.length("_kafka_value")), F.lit(0)),
                F.coalesce(F.sum(key_and_header_bytes("_kafka_")), F.lit(0)),
            )
            .collect()
        )
        self._size.learn(row[0] + row[1], row[2] + row[3])
        result = BatchResult(commit, row[0], row[1], row[2], began, seconds)
        commit_log.log_commit(self._spark, self._stream, result)
        self._services.progress.batch(
            BatchReport(
                stream=self._stream.name,
                table=self._stream.table,
                commit_id=commit.id,
                rows=result.rows,
                quarantined=result.quarantined,
                value_bytes=result.value_bytes,
                seconds=seconds,
                lag=behind,
            )
        )

    def _remove_uncommitted(self, chunk: Ranges, left: Ranges, began: datetime) -> None:
        """Remove uncommitted quarantine rows of the same offsets from earlier attempts.

        Also those that were committed, or replayed, into a table that was dropped since. Must run
        after publishing: before it, another writer could lose rows that it is about to publish.
        """
        published = {
            p: (left[p][1] if p in left else first, end) for p, (first, end) in chunk.items()
        }
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
