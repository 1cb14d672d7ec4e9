"""Stages a batch, and collects its bad records for quarantine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_ingest.commits import quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit
from spark_ingest.connect.broker import Topic
from spark_ingest.data_files.stage import Layout, append_rows, layout, write_frame, write_frames
from spark_ingest.errors import FilesNotWritten, MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import (
    JAVA_ERRORS,
    Jvm,
    java_reason,
    observe,
    observed_row,
    smallest,
)
from spark_ingest.records.bronze_rows import batch_columns, current_schemas, grow_table, row_columns
from spark_ingest.records.frames import (
    FewRecords,
    FrameCounts,
    FrameMaker,
    frame_maker,
    kafka_records,
)
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.records.validation import KAFKA_ROWS, REFUSED, Validator, unknown_id, validator
from spark_ingest.sources import Stream
from spark_ingest.streaming.batch_size import key_and_header_bytes

# Bad records are collected with the counters, so that Kafka is read once; if there are more, or
# larger ones, it is read again. The results of all tasks of a job together are limited by
# spark.driver.maxResultSize, beyond which Spark aborts the job.
_CARRIED_BYTES = 128 * 2**20
_SHARE_OF_RESULTS = 8
_LARGEST_CARRIED = 8_000
# Bytes of a record besides its key, value and headers.
_ROW_BYTES = 192
# Limit for records that frames do not decode, of which a healthy stream has few: beyond it they
# are read again.
_LEFT_BYTES = 32 * 2**20
# Number of offsets that one task reads as fast as several.
SMALL = 5000
_T = TypeVar("_T")


class Target(Protocol):
    """Where a batch is staged: a stream's lease, or a branch beside the stream."""

    def stage(self, write: Callable[[str, str], _T]) -> _T:
        """Write rows; ``write`` receives the table and the branch name."""

    def stage_files(self, files: Sequence[Any], commit: Commit) -> None:
        """Stage data files, each Iceberg's ``DataFile``."""

    def unstage(self) -> None:
        """Discard what is staged."""


@dataclass(frozen=True)
class _Counts:
    """Counters of a batch; ``carried`` is None if not all bad records were collected."""

    rows: int
    bad: int
    value_bytes: int
    other_bytes: int
    unknown_ids: dict[str, list[int]]
    carried: DataFrame | None


@dataclass(frozen=True)
class _Plan:
    """The conversion of a stream's records to rows, valid until the schemas change.

    Attributes:
        validator: Validates and decodes the records.
        types: Names and types of the decoded columns.
        layout: Columns and partitioning of the table.
        rows: The table's columns by name, without those of the batch.
        frames: Decodes records to Arrow frames; None if only Spark can decode them.
        iceberg: The table as loaded for the current batch.
    """

    validator: Validator
    types: StructType
    layout: Layout
    rows: Mapping[str, Column]
    frames: FrameMaker | None
    iceberg: Any


@dataclass(frozen=True)
class _Metrics:
    """Additional columns of each record, and the aggregates that are observed of them."""

    columns: tuple[Column, ...]
    counters: tuple[Column, ...]


@dataclass(frozen=True)
class Staged:
    """Counters of a staged batch, and its rows for quarantine.

    Attributes:
        rows: Number of good records, which are staged.
        bad: Number of bad records.
        value_bytes: Bytes of all values.
        other_bytes: Bytes of all keys and headers.
        quarantine: The bad records in the columns of quarantine, with a null batch time; None if
            there are none.
    """

    rows: int
    bad: int
    value_bytes: int
    other_bytes: int
    quarantine: DataFrame | None

    def append_quarantine(self, began: datetime) -> None:
        """Append the bad records to quarantine; ``began`` is their ``_ingested_at``."""
        if self.quarantine is not None:
            rows = self.quarantine.withColumn("_ingested_at", F.lit(began))
            quarantine_table.append(rows, self.bad > SMALL)

    def result(self, commit: Commit, began: datetime, seconds: float) -> BatchResult:
        """The result of the batch once it is published."""
        return BatchResult(
            commit, self.rows, self.bad, self.value_bytes, began, seconds, self.other_bytes
        )


class Stager:
    """Stages the batches of one stream."""

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        topic: Topic,
        schemas: Schemas,
        consumer_options: Mapping[str, str],
        note: Callable[[str], None],
    ) -> None:
        """Stage batches of the stream.

        ``consumer_options`` configure Kafka's Java consumer; ``note`` receives messages for
        users.
        """
        self._spark = spark
        self._jvm = Jvm(spark)
        self._stream = stream
        self._topic = topic
        self._schemas = schemas
        self._consumer_options = consumer_options
        self._note = note
        self._parts = ["value", "key"] if stream.ingest.key else ["value"]
        self._plan: _Plan | None = None
        self._few = FewRecords(spark, consumer_options, topic.name)
        # Spark validates bad records in any case: for a small batch one pass over all is faster.
        self._had_bad = False
        # Reasons why batches were not staged as frames; each is logged once.
        self._reasons: set[str] = set()
        self._carried_bytes = _carried_bytes(spark)
        self._metrics: dict[int, _Metrics] = {}

    def close(self) -> None:
        """Close the consumer; a later :meth:`stage` opens a new one."""
        self._few.close()

    def stage(self, records: DataFrame, commit: Commit, began: datetime, target: Target) -> Staged:
        """Stage a batch; stage it again if the registry has got a schema in between.

        Args:
            records: Rows of Spark's Kafka source, with headers.
            commit: The commit of the batch, for the snapshot's summary.
            began: Start time of the batch; its rows' ``_ingested_at``.
            target: Where to stage it.

        Raises:
            ServiceUnavailable: The registry is unavailable.
            CommitRefused: The table changed concurrently.
        """
        # The batch's records existed when it started.
        clock = time.monotonic()
        while True:
            plan = self._planned(records)
            counts = self._stage(records, plan, commit, began, target)
            unknown = counts.unknown_ids.items()
            if not sum(self._schemas.learn(ids, part, clock) for part, ids in unknown):
                break
            target.unstage()
        self._had_bad = counts.bad > 0
        bad = self._quarantine_rows(records, plan, counts) if counts.bad else None
        rows = counts.rows - counts.bad
        return Staged(rows, counts.bad, counts.value_bytes, counts.other_bytes, bad)

    def _quarantine_rows(self, records: DataFrame, plan: _Plan, counts: _Counts) -> DataFrame:
        if counts.carried is not None:
            return counts.carried
        validated = plan.validator.validate(records).records
        return validated.where(F.col("_error").isNotNull()).select(
            *quarantine_table.rows("_error", F.lit(None))
        )

    def _planned(self, records: DataFrame) -> _Plan:
        """The plan for the currently registered schemas and the current table."""
        value, key = current_schemas(self._spark, self._schemas)
        table, plan = self._stream.table, self._plan
        longest = self._stream.ingest.max_value_bytes
        if plan is None or plan.validator.value is not value or plan.validator.key is not key:
            checks = validator(self._topic.id, value, key, longest)
            types = checks.validate(records).schema()
            grow_table(self._spark, table, types)
            plan = None
        else:
            checks, types = plan.validator, plan.types
        iceberg = self._jvm.iceberg_table(table)
        # Other writers may have added a column or changed the partition spec.
        if plan is None or not plan.layout.is_of(iceberg):
            here = layout(self._jvm, iceberg)
            rows = row_columns(checks.columns, types, here.columns)
            frames = frame_maker(
                self._spark, here.columns, here.partition, here.spec, value, key, longest
            )
            plan = _Plan(checks, types, here, rows, frames, iceberg)
        self._plan = replace(plan, iceberg=iceberg)
        return self._plan

    def _stage(
        self, records: DataFrame, plan: _Plan, commit: Commit, began: datetime, target: Target
    ) -> _Counts:
        # One file for a small batch: several tiny ones would have to be compacted.
        is_small = _size(commit) <= SMALL
        maker = None if REFUSED in records.columns else plan.frames
        if maker is not None and not (is_small and self._had_bad):
            write = self._write_frame if is_small else self._write_frames
            try:
                written = write(plan, maker, commit, began)
            except FilesNotWritten as error:
                written = None
                self._note_by_rows(str(error))
            if written is not None:
                files, counts = written
                target.stage_files(files, commit)
                return counts
        metrics = self._metrics_for(1 if is_small else len(commit.ends))
        rows = {**plan.rows, **batch_columns(commit.id, began)}
        observation = Observation()
        # Project the rows before they are observed: Spark copies each observed row, and so does
        # not copy the bytes that it was decoded from.
        projected = plan.validator.validate(records).records.select(
            *(rows[name] for name in plan.layout.columns.names), *metrics.columns
        )
        observed = observe(projected, observation, metrics.counters)
        good = observed.where("not _millrace_bad").drop(*bronze.WORKING)
        target.stage(partial(append_rows, good.coalesce(1) if is_small else good, commit))
        # A row of the JVM: the bad records do not pass through Python.
        return self._counts(observed_row(observation))

    def _write_frames(
        self, plan: _Plan, maker: FrameMaker, commit: Commit, began: datetime
    ) -> tuple[list[Any], _Counts] | None:
        """Write a batch's data files, and count; None if Spark must validate all of it."""
        # A small batch needs few tasks and files, even with many partitions.
        most = max(self._spark.sparkContext.defaultParallelism, len(commit.ends))
        tasks = min(max(_size(commit) // SMALL, 1), most)
        name, starts, ends = self._topic.name, commit.starts, commit.ends
        read = kafka_records(self._spark, self._consumer_options, name, starts, ends, tasks)
        topic, most_left = (name, self._topic.id), _LEFT_BYTES // tasks
        frames = maker.of_batch(self._spark, topic, commit.id, began, most_left)
        made = frames.in_tasks(read)
        files = write_frames(self._spark, made, plan.layout, self._stream.table)
        return self._checked(frames.counts(), files, plan)

    def _write_frame(
        self, plan: _Plan, maker: FrameMaker, commit: Commit, began: datetime
    ) -> tuple[list[Any], _Counts] | None:
        """Like :meth:`_write_frames`, for few records, in the driver."""
        topic = (self._topic.name, self._topic.id)
        try:
            read = self._few.read(commit.starts, commit.ends)
            frames = maker.of_batch(self._spark, topic, commit.id, began, _LEFT_BYTES)
            frame = frames.here(read)
        except JAVA_ERRORS as error:
            # The position of its consumer is unknown.
            self._few.close()
            raise FilesNotWritten(f"{self._stream.table}: {java_reason(error)}") from error
        if frame is None:
            return None
        files = write_frame(self._spark, frame, plan.layout, plan.iceberg)
        return self._checked(frames.counts(), files, plan)

    def _note_by_rows(self, reason: str) -> None:
        """Log once why a batch could not be staged as frames and is staged as Spark rows."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._note(f"{reason}: falling back to Iceberg's writer for a batch")

    def _checked(
        self, frames: FrameCounts, files: list[Any], plan: _Plan
    ) -> tuple[list[Any], _Counts] | None:
        """Check the files of a batch's frames, and count its records.

        None if Spark must validate all of the batch.
        """
        written = sum(int(file.recordCount()) for file in files)
        if written != frames.rows:
            raise MillraceError(
                f"{self._stream.table}: wrote {written} rows of {frames.rows} good records: "
                "nothing was committed"
            )
        bad, carried, unknown = 0, None, {}
        if frames.left:
            validated = self._counts_of_left(self._jvm.dataframe(frames.records, KAFKA_ROWS), plan)
            if validated.rows != frames.left or validated.bad != frames.left:
                # Not all were collected, or some are valid.
                return None
            bad, carried, unknown = validated.bad, validated.carried, validated.unknown_ids
        return files, _Counts(
            frames.rows + bad, bad, frames.value_bytes, frames.other_bytes, unknown, carried
        )

    def _counts_of_left(self, left: DataFrame, plan: _Plan) -> _Counts:
        """Validate the records that frames did not decode, and count them."""
        metrics = self._metrics_for(1)
        records = plan.validator.validate(left).records
        counted = records.select("_kafka_key", "_kafka_headers", *metrics.columns).agg(
            *metrics.counters
        )
        return self._counts(self._jvm.first_row(counted))

    def _counts(self, row: Any) -> _Counts:
        """The counts in a JVM row of :func:`batch_counters`."""
        bad, carried = row.getLong(1), row.getSeq(4)
        return _Counts(
            rows=row.getLong(0),
            bad=bad,
            value_bytes=row.getLong(2),
            other_bytes=row.getLong(3),
            unknown_ids={part: _numbers(row.getSeq(5 + i)) for i, part in enumerate(self._parts)},
            # If some are missing, all are read again: do not keep these in memory.
            carried=self._jvm.dataframe(carried, quarantine_table.COLUMNS)
            if carried.size() == bad
            else None,
        )

    def _metrics_for(self, tasks: int) -> _Metrics:
        """The metrics of a batch with this number of tasks."""
        metrics = self._metrics.get(tasks)
        if metrics is None:
            most, largest = carried_limits(self._carried_bytes, tasks)
            metrics = _Metrics(
                metric_columns(self._parts, largest), batch_counters(self._parts, most)
            )
            self._metrics[tasks] = metrics
        return metrics


def carried_limits(budget: int, tasks: int) -> tuple[int, int]:
    """The maximum number of bad records that a task collects, and their maximum size in bytes.

    ``budget`` is the limit in bytes for all tasks together.
    """
    share = budget // tasks
    largest = max(min(_LARGEST_CARRIED, share - _ROW_BYTES), 0)
    return max(share // (largest + _ROW_BYTES), 1), largest


def _carried_bytes(spark: SparkSession) -> int:
    """The maximum bytes of bad records that a batch collects in the driver."""
    most = Jvm(spark).most_result_bytes()
    # 0 means no limit.
    return min(_CARRIED_BYTES, most // _SHARE_OF_RESULTS) if most else _CARRIED_BYTES


def metric_columns(parts: list[str], largest: int) -> tuple[Column, ...]:
    """Additional columns of each record of a batch, for :func:`batch_counters`.

    ``parts`` are the parts with schema ids, ``value`` and ``key``; ``largest`` is the maximum
    size in bytes of a bad record that is collected.
    """
    bad = F.col("_error").isNotNull()
    length = F.coalesce(F.length("_kafka_value"), F.lit(0))
    whole = length + key_and_header_bytes("_kafka_")
    quarantined = F.struct(*quarantine_table.rows("_error", F.lit(None)))
    unknown = [unknown_id(part).alias(f"_millrace_unknown_{part}") for part in parts]
    return (
        bad.alias("_millrace_bad"),
        length.alias("_millrace_bytes"),
        F.when(bad & (whole <= largest), quarantined).alias("_millrace_carried"),
        *unknown,
    )


def batch_counters(parts: list[str], most: int) -> tuple[Column, ...]:
    """The aggregates of the columns of :func:`metric_columns`.

    ``parts`` are the parts with schema ids, ``value`` and ``key``; ``most`` is the maximum number
    of bad records that are collected.
    """
    return (
        F.count(F.lit(1)),
        F.count_if("_millrace_bad"),
        F.coalesce(F.sum("_millrace_bytes"), F.lit(0)),
        F.coalesce(F.sum(key_and_header_bytes("_kafka_")), F.lit(0)),
        smallest(F.col("_millrace_carried"), most),
        *(F.collect_set(f"_millrace_unknown_{part}") for part in parts),
    )


def _size(commit: Commit) -> int:
    """The number of offsets in a commit."""
    return sum(end - commit.starts.get(partition, 0) for partition, end in commit.ends.items())


def _numbers(sequence: Any) -> list[int]:
    return [sequence.apply(i) for i in range(sequence.size())]
