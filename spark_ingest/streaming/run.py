"""Runs streams: one structured-streaming query per topic, from its table's offsets."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_ingest.commits.commit_log_writer import CommitLog
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.renewals import Renewals
from spark_ingest.commits.resume import Position, resume
from spark_ingest.connect.broker import Begin, range_options, reader_options
from spark_ingest.errors import MillraceError, ServiceUnavailable
from spark_ingest.lake import jvm_watch
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, batch_ends, java_reason
from spark_ingest.records import out_of_range
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.sources import Stream
from spark_ingest.streaming.batch import BatchWriter
from spark_ingest.streaming.batch_size import MOST_BYTES, PROBE, BatchSize, first_part, record_bytes
from spark_ingest.streaming.captured_topics import topic_of
from spark_ingest.streaming.progress import BatchReport
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.supervise import Stopping, SupervisedStream, supervise
from spark_ingest.streaming.tables import create_missing_table

_RETRY_SECONDS = 5.0
_POLL_SECONDS = 0.2
# What a small batch takes on a laptop.
_BATCH_SECONDS = 0.5


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run.

    Attributes:
        every: Target latency of a record in seconds; None reads the available records and stops.
        max_records: Maximum number of records in a batch.
        unknown_wait: Seconds from the start of a batch until a schema id that is missing in the
            registry counts as unknown.
        max_rate: Maximum records per second of each stream; None for no limit.
        begin: Start offsets of a table without commits.
        max_bytes: Maximum bytes in a batch, estimated from earlier records.
        writer_id: Takes over tables of a former writer with the same id at once.
    """

    every: float | None
    max_records: int
    unknown_wait: float
    max_rate: int | None = None
    begin: Begin = "earliest"
    max_bytes: int = MOST_BYTES
    writer_id: str | None = None

    @property
    def batch_records(self) -> int:
        """Maximum number of records in a batch, so that no batch is far above the rate."""
        if self.max_rate is None:
            return self.max_records
        return min(self.max_records, ceil(self.max_rate * max(self.every or 1.0, 1.0)))

    @property
    def interval(self) -> float | None:
        """Trigger interval in seconds: ``every`` minus the expected duration of a batch."""
        if self.every is None:
            return None
        return max(self.every - _BATCH_SECONDS, self.every / 2)


class StreamRun:
    """One stream under its lease; :meth:`start` runs its query and :meth:`stop` ends it."""

    def __init__(
        self,
        services: Services,
        stream: Stream,
        settings: RunSettings,
        log: CommitLog,
        renewals: Renewals,
        stopping: threading.Event,
    ) -> None:
        self.stream = stream
        self._log = log
        self._failure: MillraceError | Stopping | None = None
        self._services = services
        self._settings = settings
        self._stopping = stopping
        self._topic = topic_of(services, stream)
        self._lease = Lease.take(Jvm(services.spark), stream.table, renewals, settings.writer_id)
        self._in_batch = threading.Lock()
        self._closing = False
        # When the rate allows the next batch.
        self._free_at = 0.0
        self.commits = 0
        self._size = BatchSize(settings.max_bytes)
        self._schemas = Schemas(services.registry, stream, settings.unknown_wait, self._wait)
        self._query: StreamingQuery | None = None
        self._checkpoint: tempfile.TemporaryDirectory[str] | None = None
        self._position = Position(0, {}, None)

    def start(self) -> None:
        """Start at the table's offsets, with a new checkpoint folder.

        Raises:
            MillraceError: The table and the topic do not match.
        """
        services = self._services
        # Read again: partitions may have been added.
        topic = self._topic = topic_of(services, self.stream)
        begin, note = self._settings.begin, services.progress.note
        self._position = resume(
            self._lease, self.stream, topic, services.broker, self._log, begin, note
        )
        self._failure = None
        self._writer = BatchWriter(services, self.stream, topic, self._lease, self._schemas)
        self._query = self._begin_query()

    def _begin_query(self) -> StreamingQuery:
        # The table is the checkpoint; Spark's checkpoint is for this query only.
        self._checkpoint = tempfile.TemporaryDirectory(prefix="spark-ingest-")
        services, offsets = self._services, self._position.offsets
        options = reader_options(
            services.connections, self._topic, offsets, self._settings.batch_records
        )
        writer = (
            services.spark.readStream.format("kafka")
            .options(**options)
            .load()
            .writeStream.queryName(self.stream.name)
            .foreachBatch(self._batch)
            # Hadoop does not decode the path: a blank must not be percent-encoded.
            .option("checkpointLocation", f"file:{self._checkpoint.name}")
        )
        # The query's thread inherits it. With the scheduler's mode FAIR, pools share the cores.
        services.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.stream.name)
        interval = self._settings.interval
        if interval is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(interval * 1000)} milliseconds").start()

    def running(self) -> bool:
        """Whether the query is active.

        Raises:
            CommitRefused: Its table changed concurrently: after a restart it reads its offsets
                again.
            ServiceUnavailable: The broker is unavailable.
            MillraceError: The stream cannot continue.
        """
        if self._query is None:
            return False
        self._check_lease()
        active = self._query.isActive
        if active and self._failure is None:
            return True
        error = None if active else self._query.exception()
        self._end_query()
        if isinstance(self._failure, MillraceError):
            raise self._failure
        if error is not None:
            known = self._services.broker.reader_failure(str(error), self._topic.name)
            raise known or MillraceError(f"{self.stream.name}: {_cause(error)}") from error
        return False

    def _check_lease(self) -> None:
        # A batch checks it before it publishes, and removes its quarantined rows.
        if not self._in_batch.acquire(blocking=False):
            return
        try:
            self._lease.check_if_quiet()
        except MillraceError as error:
            self._failure = self._failure or error
        finally:
            self._in_batch.release()

    def stop(self) -> None:
        """Let the running batch finish, then stop the query and release the lease."""
        self._closing = True
        with self._in_batch:
            self._end_query()
        try:
            # Another writer would log missing commits a second time.
            self._log.flush(self.stream)
        finally:
            self._lease.release()

    def _end_query(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self._checkpoint is not None:
            self._checkpoint.cleanup()
            self._checkpoint = None
            self._writer.close()

    def _batch(self, records: DataFrame, batch_id: int) -> None:
        # Never wait for the lock while the run stops: stopping the query waits for this call.
        while not self._in_batch.acquire(timeout=_POLL_SECONDS):
            if self._closing:
                return
        try:
            # After a failure Spark may continue for a moment; its checkpoint is not used.
            if self._failure is None:
                self._write(records, batch_id)
        except (MillraceError, Stopping) as failure:
            # Stored for :meth:`running`: Spark would turn it into pages of stack trace.
            self._failure = failure
        except (*JAVA_ERRORS, OSError) as error:
            if jvm_watch.has_exited(error):
                raise
            self._failure = MillraceError(f"{self.stream.name}: {java_reason(error)}")
            self._failure.__cause__ = error
        finally:
            self._in_batch.release()

    def _write(self, records: DataFrame, batch_id: int) -> None:
        self._check_stopping()
        if self._checkpoint is None:
            raise Stopping
        starts = self._position.offsets
        ends = batch_ends(Path(self._checkpoint.name), batch_id, self._topic.name)
        if all(end == starts.get(partition) for partition, end in ends.items()):
            # A query's first batch may be empty.
            return
        # A batch that is too large is split into several commits: the table is the checkpoint.
        while (here := self._position.offsets) != ends:
            self._check_stopping()
            waiting = sum(end - here.get(p, 0) for p, end in ends.items())
            fitting = self._size.fitting(waiting, lambda: self._record_bytes(ends))
            to = first_part(here, ends, fitting)
            is_whole = here is starts and to == ends
            try:
                self._commit_range(records if is_whole else self._read(here, to), to)
            except JAVA_ERRORS as error:
                if not out_of_range.may_be_cause_of(error) or not self._commit_in_parts(to):
                    raise

    def _commit_in_parts(self, ends: Mapping[int, int]) -> bool:
        """Commit the records up to ``ends`` in several parts, if Spark cannot read all of them.

        Returns whether there are unreadable records; without any, nothing is committed.
        """
        services, topic, here = self._services, self._topic.name, self._position.offsets
        to = {p: here.get(p, 0) for p in ends}
        ranges = {p: (to[p], end) for p, end in ends.items()}
        found = out_of_range.find(services.broker, topic, ranges, self._check_stopping)
        if not found:
            return False
        services.progress.note(f"{self.stream.name}: {out_of_range.note(found)}")
        # The read may have failed after a part of the batch was staged.
        self._lease.unstage()
        for part, is_unreadable in out_of_range.parts(ranges, found):
            self._check_stopping()
            starts, to = to, to | {p: end for p, (_, end) in part.items()}
            if is_unreadable:
                rows = out_of_range.rows(services.spark, services.broker, topic, part)
            else:
                rows = self._read(starts, to)
            self._commit_range(rows, to)
        return True

    def _record_bytes(self, ends: Mapping[int, int]) -> float | None:
        """Mean bytes of a record in a sample of the unread records."""
        here = self._position.offsets
        return record_bytes(self._read(here, first_part(here, ends, PROBE)))

    def _check_stopping(self) -> None:
        if self._closing or self._stopping.is_set():
            raise Stopping

    def _read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        """Read a range of offsets with Spark's Kafka batch source."""
        options = range_options(self._services.connections, self._topic.name, starts, ends)
        return self._services.spark.read.format("kafka").options(**options).load()

    def _commit_range(self, records: DataFrame, ends: dict[int, int]) -> None:
        """Commit the records from the current position up to ``ends``, exclusive."""
        starts = self._position.offsets
        number, began = self._position.commit_id + 1, time.monotonic()
        while True:
            try:
                result = self._writer.write(records, number, starts, ends)
                break
            except ServiceUnavailable as error:
                self._services.progress.waiting(self.stream.name, f"{error}; waiting")
                self._wait(_RETRY_SECONDS)
                # It may have failed after the batch was staged.
                self._lease.unstage()
        self._position = Position(number, ends, self._topic.id)
        self.commits += 1
        read = result.rows + result.quarantined
        self._size.learn(read, result.value_bytes + result.other_bytes)
        self._log.add(self._lease, self.stream, result)
        self._services.progress.batch(
            BatchReport(
                stream=self.stream.name,
                table=self.stream.table,
                commit_id=number,
                rows=result.rows,
                quarantined=result.quarantined,
                value_bytes=result.value_bytes,
                seconds=result.seconds,
                lag=self._lag(ends),
            )
        )
        if self._settings.max_rate is not None:
            taken = sum(end - starts.get(p, 0) for p, end in ends.items())
            self._free_at = max(self._free_at, began) + taken / self._settings.max_rate
            self._wait(self._free_at - time.monotonic())

    def _lag(self, ends: Mapping[int, int]) -> int | None:
        """Lag in records; None if the broker is unavailable, as the batch is committed."""
        try:
            newest = self._services.broker.end_offsets(self._topic)
        except ServiceUnavailable:
            return None
        return sum(max(newest[p] - ends.get(p, 0), 0) for p in newest)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._closing or self._stopping.wait(min(left, _POLL_SECONDS)):
                raise Stopping


def run_streams(
    services: Services,
    streams: Sequence[Stream],
    settings: RunSettings,
    stopping: threading.Event,
    missing: Container[str] = (),
) -> None:
    """Run streams until each is done, or ``stopping`` is set.

    With ``settings.every`` a failed stream is restarted after a pause; without, it stops and the
    others finish. A captured table without a topic is not a failure: its stream waits for the
    topic, or is skipped. ``missing`` names the streams whose table does not exist yet. After
    ``stopping`` is set, each stream finishes its batch first.

    Raises:
        MillraceError: A stream was in a failed state at the end.
    """
    log = CommitLog(services.spark, services.progress.note)

    def supervised(stream: Stream, renewals: Renewals) -> SupervisedStream:
        return SupervisedStream(
            stream.name,
            lambda: StreamRun(services, stream, settings, log, renewals, stopping),
            # The table may have been dropped.
            lambda: create_missing_table(services, stream),
            settings.every is None,
            services.progress,
            stream.name in missing,
        )

    try:
        with Renewals(Jvm(services.spark)) as renewals:
            supervise([supervised(s, renewals) for s in streams], stopping, services.progress)
    finally:
        log.close()


def _cause(error: StreamingQueryException) -> str:
    """The root cause of a query's failure, on one line."""
    text = str(error)
    for line in reversed(text.splitlines()):
        if line.startswith("Caused by:"):
            return line.removeprefix("Caused by:").strip()
    return " ".join(text.split())
