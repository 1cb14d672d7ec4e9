"""Streams at work: each topic's query, from its table's offsets until done or told to stop."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from spark_ingest import bronze, ledger, leftovers, quarantine
from spark_ingest.checkpoint import Position, made_again, made_anew, position
from spark_ingest.commit import BatchResult, BatchWriter
from spark_ingest.commit_log import CommitLog
from spark_ingest.errors import CommitRefused, MillraceError, ServiceUnavailable
from spark_ingest.judge import planned_columns
from spark_ingest.kafka import Begin, batch_ends, reader_options
from spark_ingest.lease import Commit, Lease, first_snapshot
from spark_ingest.progress import BatchReport, Progress
from spark_ingest.services import Services
from spark_ingest.session import CATALOG, JAVA_ERRORS, Jvm, java_reason
from spark_ingest.sources import Stream
from spark_ingest.topic_schemas import Schemas

_RETRY_SECONDS = 5.0
_POLL_SECONDS = 0.2
_RENEW_SECONDS = 120.0
# What a small batch takes on a laptop.
_BATCH_SECONDS = 0.5


@dataclass(frozen=True)
class RunSettings:
    """How streams run.

    Attributes:
        every: Seconds within which a record shall be visible; None takes what is there now
            and ends.
        max_records: Most records in a batch.
        unknown_wait: Seconds to ask the registry for an id before it counts as unknown.
        max_rate: Most records a second of each stream; None for no limit.
        begin: Where a table without a commit begins.
    """

    every: float | None
    max_records: int
    unknown_wait: float
    max_rate: int | None = None
    begin: Begin = "earliest"

    @property
    def batch_records(self) -> int:
        """Most records in a batch, so that no batch is far above the rate."""
        if self.max_rate is None:
            return self.max_records
        return min(self.max_records, ceil(self.max_rate * max(self.every or 1.0, 1.0)))

    @property
    def interval(self) -> float | None:
        """Seconds between two batches: less than ``every``, since a batch takes time too."""
        if self.every is None:
            return None
        return max(self.every - _BATCH_SECONDS, self.every / 2)


class Stopping(Exception):
    """The run is being stopped while a batch waits."""


def create_tables(services: Services, streams: Sequence[Stream]) -> list[str]:
    """Make the schema, quarantine, the commit log and each stream's table; what was made.

    Raises:
        ConfigurationError: A stream has no usable schema in the registry.
        ServiceUnavailable: The registry does not answer.
    """
    spark = services.spark
    bronze.create_schema(spark)
    made = []
    if quarantine.create(spark):
        made.append(quarantine.TABLE)
    if ledger.create(spark):
        made.append(ledger.TABLE)
    for stream in streams:
        if not bronze.exists(spark, stream.table):
            schemas = Schemas(services.registry, stream, 0, time.sleep)
            bronze.create_table(
                spark,
                stream.table,
                planned_columns(spark, schemas),
                stream.ingest.partitioned_by,
                stream.columns,
                stream.description,
            )
            made.append(stream.table)
            ledger.name_table(spark, stream)
        first_snapshot(Jvm(spark), stream.table)
    return made


@dataclass(frozen=True)
class Planned:
    """What a run of a stream would begin with.

    Attributes:
        partitions: Of its topic.
        next_commit: The commit id of its next batch.
        to_read: Records on the broker that are not committed.
        would: What would change in the lake, for people.
    """

    partitions: int
    next_commit: int
    to_read: int
    would: str


def plan(services: Services, stream: Stream) -> Planned:
    """Look at a stream without changing anything.

    Raises:
        MillraceError: The stream could not start.
    """
    spark = services.spark
    topic = services.broker.existing_topic(stream.topic, stream.name)
    wanted = planned_columns(spark, Schemas(services.registry, stream, 0, time.sleep))
    ends = services.broker.end_offsets(topic)
    if bronze.exists(spark, stream.table):
        here = position(services, stream, topic)
        missing = bronze.missing_columns(spark, stream.table, wanted)
        would = f"add or widen {', '.join(missing)}" if missing else "append"
    else:
        here = Position(0, services.broker.first_offsets(topic), None)
        would = f"create the table with {len(wanted.fields)} columns"
    to_read = sum(end - here.offsets[partition] for partition, end in ends.items())
    return Planned(len(topic.partitions), here.commit_id + 1, to_read, would)


def with_progress(services: Services, progress: Progress) -> Services:
    """The same services, reporting elsewhere."""
    return replace(services, progress=progress)


class StreamRun:
    """One stream under its lease: made by :meth:`start`, ended by :meth:`stop`."""

    def __init__(
        self,
        services: Services,
        stream: Stream,
        settings: RunSettings,
        log: CommitLog,
        stopping: threading.Event,
    ) -> None:
        self.stream = stream
        self._log = log
        self._failure: MillraceError | Stopping | None = None
        self._services = services
        self._settings = settings
        self._stopping = stopping
        self._topic = services.broker.existing_topic(stream.topic, stream.name)
        self._lease = Lease.take(Jvm(services.spark), stream.table)
        self._in_batch = threading.Lock()
        self._closing = False
        self._last_write = time.monotonic()
        # When the rate allows the next batch.
        self._free_at = 0.0
        # When to look again for a service that was away; None where none is.
        self._rests_until: float | None = None
        self._schemas = Schemas(
            services.registry, stream, settings.unknown_wait, self._wait
        )
        self._query: StreamingQuery | None = None
        self._checkpoint: tempfile.TemporaryDirectory[str] | None = None
        self._position = Position(0, {}, None)

    def start(self) -> None:
        """Begin at the table's offsets, with a checkpoint folder of its own.

        Raises:
            MillraceError: The table and the topic do not go together.
        """
        services = self._services
        # Asked anew: it may have got partitions since.
        topic = services.broker.existing_topic(self.stream.topic, self.stream.name)
        self._topic = topic
        self._position = position(services, self.stream, topic, self._settings.begin)
        # What an earlier start staged or set aside and did not publish is read again.
        self._lease.unstage()
        # What this run committed is written down first, or it would be twice.
        self._log.flush()
        earlier = ledger.catch_up(services.spark, self.stream)
        if self._position.topic_id is None and (
            earlier or self._settings.begin != "earliest"
        ):
            # Before anything of an earlier table is removed from quarantine: what the broker
            # loses from now on is a gap.
            self._commit_beginning()
            if earlier:
                told = made_anew(self.stream, earlier, topic, self._position.offsets)
                services.progress.note(told)
        leftovers.remove(services.spark, self.stream, topic, self._position.offsets)
        self._failure = None
        # The table is the checkpoint; Spark's own serves this start alone.
        self._checkpoint = tempfile.TemporaryDirectory(prefix="spark-ingest-")
        self._writer = BatchWriter(
            services.spark,
            self.stream,
            topic,
            self._lease,
            self._schemas,
            self._check_topic,
        )
        options = reader_options(
            services.connections,
            topic,
            self._position.offsets,
            self._settings.batch_records,
        )
        writer = (
            services.spark.readStream.format("kafka")
            .options(**options)
            .load()
            .writeStream.queryName(self.stream.name)
            .foreachBatch(self._batch)
            # Hadoop takes a path with a blank as it is, and an encoded one too literally.
            .option("checkpointLocation", f"file:{self._checkpoint.name}")
        )
        interval = self._settings.interval
        if interval is None:
            writer = writer.trigger(availableNow=True)
        else:
            milliseconds = round(interval * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        self._query = writer.start()

    def _commit_beginning(self) -> None:
        """Commit where the table begins, with no rows.

        The place was chosen by this moment: a start after a crash would choose a later one, and
        pass over what came in between.
        """
        began, offsets = datetime.now(UTC), self._position.offsets
        number = self._position.commit_id + 1
        commit = Commit(number, self._topic.id, offsets, offsets)
        table = self._services.spark.table(f"{CATALOG}.{self.stream.table}")
        self._lease.stage(table.limit(0), commit)
        self._lease.publish()
        self._position = Position(number, offsets, self._topic.id)
        seconds = (datetime.now(UTC) - began).total_seconds()
        self._log.add(
            self._lease, self.stream, BatchResult(commit, 0, 0, 0, began, seconds)
        )

    def running(self) -> bool:
        """Whether the query is at work, or will be.

        One whose table moved is begun anew, and one whose broker went away when it is back.

        Raises:
            MillraceError: The stream cannot go on.
        """
        if self._rests_until is not None:
            if time.monotonic() >= self._rests_until:
                self._start_again()
            return True
        if self._query is None:
            return False
        active = self._query.isActive
        if active and self._failure is None:
            return True
        error = None if active else self._query.exception()
        self._end_query()
        if isinstance(self._failure, CommitRefused):
            self._services.progress.restarted(
                self.stream.name, f"{self._failure}; reading its offsets again"
            )
            self._start_again()
            return True
        if isinstance(self._failure, MillraceError):
            raise self._failure
        if error is not None:
            told = self._services.broker.reader_failure(str(error), self._topic.name)
            if isinstance(told, ServiceUnavailable):
                self._rest(told)
                return True
            told = told or MillraceError(f"{self.stream.name}: {_cause(error)}")
            raise told from error
        return False

    def _start_again(self) -> None:
        self._rests_until = None
        try:
            self.start()
        except ServiceUnavailable as error:
            self._rest(error)

    def _rest(self, error: ServiceUnavailable) -> None:
        self._services.progress.waiting(self.stream.name, f"{error}; waiting")
        self._rests_until = time.monotonic() + _RETRY_SECONDS

    def renew(self) -> None:
        """Keep the lease where nothing was committed for a while."""
        if self._in_batch.acquire(blocking=False):
            try:
                self._keep_lease()
            finally:
                self._in_batch.release()

    def _keep_lease(self) -> None:
        if time.monotonic() - self._last_write > _RENEW_SECONDS:
            self._lease.renew()
            self._last_write = time.monotonic()

    def stop(self) -> None:
        """Let the batch at work finish, then end the query and give the lease back."""
        self._closing = True
        with self._in_batch:
            self._end_query()
        try:
            # Another writer would find the commits missing and write them down as well.
            self._log.flush()
        finally:
            self._lease.release()

    def _end_query(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None
        if self._checkpoint is not None:
            self._checkpoint.cleanup()
            self._checkpoint = None

    def _batch(self, records: DataFrame, batch_id: int) -> None:
        # Never waits for the lock while the run ends: ending the query waits for this.
        while not self._in_batch.acquire(timeout=_POLL_SECONDS):
            if self._closing:
                return
        try:
            # After a failure Spark may go on for a moment; its checkpoint counts for nothing.
            if self._failure is None:
                self._write(records, batch_id)
        except (MillraceError, Stopping) as failure:
            # Kept for the run to read: Spark would make pages of stack trace of it.
            self._failure = failure
        except (*JAVA_ERRORS, OSError) as error:
            self._failure = MillraceError(f"{self.stream.name}: {java_reason(error)}")
            self._failure.__cause__ = error
        finally:
            self._in_batch.release()

    def _write(self, records: DataFrame, batch_id: int) -> None:
        if self._closing or self._stopping.is_set() or self._checkpoint is None:
            raise Stopping
        starts = self._position.offsets
        ends = batch_ends(Path(self._checkpoint.name), batch_id, self._topic.name)
        if all(end == starts.get(partition) for partition, end in ends.items()):
            # A query's first batch may hold nothing.
            return
        number, began = self._position.commit_id + 1, time.monotonic()
        while True:
            try:
                result = self._writer.write(records, number, starts, ends)
                break
            except ServiceUnavailable as error:
                self._services.progress.waiting(self.stream.name, f"{error}; waiting")
                self._wait(_RETRY_SECONDS)
                self._keep_lease()
                # It may have failed with the batch staged already.
                self._lease.unstage()
        self._position = Position(number, ends, self._topic.id)
        self._last_write = time.monotonic()
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
        """Records behind the offsets; None where the broker is away: the batch is in."""
        try:
            newest = self._services.broker.end_offsets(self._topic)
        except ServiceUnavailable:
            return None
        return sum(max(newest[p] - ends.get(p, 0), 0) for p in newest)

    def _check_topic(self) -> None:
        now = self._services.broker.existing_topic(self.stream.topic, self.stream.name)
        if now.id != self._topic.id:
            raise made_again(self.stream, self._topic.id, now.id)

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
) -> None:
    """Run streams until each is done, or ``stopping`` is set.

    Args:
        services: What they share.
        streams: Which; their tables must exist.
        settings: How.
        stopping: Set by whoever wants them to stop: each finishes its batch first.

    Raises:
        MillraceError: A stream cannot start or go on; the others are stopped.
    """
    runs: list[StreamRun] = []
    log = CommitLog(services.spark)
    try:
        for stream in streams:
            # One by one: those that got their lease give it back when a later one fails.
            run = StreamRun(services, stream, settings, log, stopping)
            runs.append(run)
        for run in runs:
            run.start()
        # Each is looked at every time: `any` alone would stop at the first that runs.
        while sum(run.running() for run in runs):
            if stopping.wait(_POLL_SECONDS):
                services.progress.note(
                    "stopping: the batches at work are finished first"
                )
                break
            for run in runs:
                run.renew()
    finally:
        with ExitStack() as ends:
            ends.callback(log.close)
            for run in runs:
                ends.callback(run.stop)


def _cause(error: StreamingQueryException) -> str:
    """The root of a query's failure, as one line."""
    text = str(error)
    for line in reversed(text.splitlines()):
        if line.startswith("Caused by:"):
            return line.removeprefix("Caused by:").strip()
    return " ".join(text.split())
