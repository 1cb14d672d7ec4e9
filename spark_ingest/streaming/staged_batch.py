"""A batch on the writer's branch: good records as rows, bad ones counted and kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_ingest.commits import quarantine_table
from spark_ingest.commits.committed import Commit
from spark_ingest.commits.lease import Lease
from spark_ingest.connect.broker import Topic
from spark_ingest.data_files.stage import Layout, append_frame, append_frames, append_rows, layout
from spark_ingest.errors import FilesNotWritten, MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason, observed_row, smallest
from spark_ingest.records.bronze_rows import batch_columns, grow_table, row_columns, schemas_now
from spark_ingest.records.frames import (
    FewRecords,
    FrameCounts,
    FrameMaker,
    frame_counters,
    frame_maker,
    kafka_records,
    observed_counts,
)
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.records.validation import KAFKA_ROWS, REFUSED, Validator, unknown_id, validator
from spark_ingest.sources import Stream
from spark_ingest.streaming.batch_size import key_and_header_bytes

# Bad records come back with the counters, so that Kafka is read once. Where there are more, or
# larger ones, it is read again. What all tasks of a batch bring counts together towards
# spark.driver.maxResultSize: Spark ends the job beyond that.
_CARRIED_BYTES = 128 * 2**20
_SHARE_OF_RESULTS = 8
_LARGEST_CARRIED = 8_000
# What a record has besides its key, value and headers.
_ROW_BYTES = 192
# Records that frames leave are few where a stream is sound: more of them are read again.
_LEFT_BYTES = 32 * 2**20
# Offsets of a batch that one task takes as fast as several.
SMALL = 5000


@dataclass(frozen=True)
class _Counts:
    """What the pass over a batch counted; ``carried`` is None where not all bad ones came along."""

    rows: int
    bad: int
    value_bytes: int
    other_bytes: int
    unknown_ids: dict[str, list[int]]
    carried: DataFrame | None


@dataclass(frozen=True)
class _Plan:
    """How a stream's records become rows, until a schema comes.

    Attributes:
        validator: Validates them.
        types: Names and types of what they decode to.
        layout: What the table's rows are.
        rows: The table's columns by name, all but those of the batch.
        frames: What makes frames of them; None where Spark alone can decode them.
    """

    validator: Validator
    types: StructType
    layout: Layout
    rows: Mapping[str, Column]
    frames: FrameMaker | None


@dataclass(frozen=True)
class _Noted:
    """What is noted of each record besides its row, and counted and collected of that."""

    notes: tuple[Column, ...]
    counters: tuple[Column, ...]


@dataclass(frozen=True)
class Staged:
    """What a batch had, and its rows for quarantine.

    Attributes:
        rows: Good records, staged.
        bad: Bad ones.
        value_bytes: Bytes of all values.
        other_bytes: Bytes of all keys and headers.
        quarantine: The bad ones in the columns of quarantine, without the time of their batch;
            None where there are none.
    """

    rows: int
    bad: int
    value_bytes: int
    other_bytes: int
    quarantine: DataFrame | None


class Stager:
    """Stages the batches of one stream under its lease."""

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        topic: Topic,
        lease: Lease,
        schemas: Schemas,
        consumer_options: Mapping[str, str],
        note: Callable[[str], None],
    ) -> None:
        """Bind a stream's batches to its lease.

        ``consumer_options`` are those of Kafka's Java client that read the topic; ``note`` takes
        what a person should know.
        """
        self._spark = spark
        self._jvm = Jvm(spark)
        self._stream = stream
        self._topic = topic
        self._lease = lease
        self._schemas = schemas
        self._consumer_options = consumer_options
        self._note = note
        self._parts = ["value", "key"] if stream.ingest.key else ["value"]
        self._plan: _Plan | None = None
        self._few = FewRecords(spark, consumer_options, topic.name)
        # Bad records are validated by Spark in any case, a small batch of all in one pass.
        self._had_bad = False
        # Why batches were not staged as frames: each is noted once.
        self._reasons: set[str] = set()
        self._carried_bytes = _carried_bytes(spark)
        self._noted: dict[int, _Noted] = {}

    def close(self) -> None:
        """End what reads its records; it may stage on."""
        self._few.close()

    def stage(self, records: DataFrame, commit: Commit, began: datetime) -> Staged:
        """Stage a batch, again where the registry learned of a schema meanwhile.

        Args:
            records: Rows of Spark's Kafka source, with headers.
            commit: What publishing the branch will mean.
            began: When the batch began; its rows' ``_ingested_at``.

        Raises:
            ServiceUnavailable: The registry does not answer.
            CommitRefused: The table moved meanwhile.
        """
        # The batch's records were there when it began.
        clock = time.monotonic()
        while True:
            plan = self._planned(records)
            counts = self._stage(records, plan, commit, began)
            unknown = counts.unknown_ids.items()
            if not sum(self._schemas.learn(ids, part, clock) for part, ids in unknown):
                break
            self._lease.unstage()
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
        """How records become rows with the schemas that are registered now."""
        value, key = schemas_now(self._spark, self._schemas)
        table, plan = self._stream.table, self._plan
        longest = self._stream.ingest.max_value_bytes
        if plan is None or plan.validator.value is not value or plan.validator.key is not key:
            made = validator(self._topic.id, value, key, longest)
            types = made.validate(records).schema()
            grow_table(self._spark, table, types)
            plan = None
        else:
            made, types = plan.validator, plan.types
        iceberg = self._jvm.iceberg_table(table)
        # Somebody else may have given the table a column, or another partition.
        if plan is None or not plan.layout.is_of(iceberg):
            here = layout(self._jvm, iceberg)
            rows = row_columns(made.columns, types, here.columns)
            frames = frame_maker(
                self._spark, here.columns, here.partition, here.spec, value, key, longest
            )
            plan = self._plan = _Plan(made, types, here, rows, frames)
        return plan

    def _stage(self, records: DataFrame, plan: _Plan, commit: Commit, began: datetime) -> _Counts:
        # Four files of a handful of rows each would only have to be compacted.
        is_small = _size(commit) <= SMALL
        maker = None if REFUSED in records.columns else plan.frames
        if maker is not None and not (is_small and self._had_bad):
            stage = self._stage_frame if is_small else self._stage_frames
            try:
                counts = stage(plan, maker, commit, began)
            except FilesNotWritten as error:
                counts = None
                self._note_by_rows(str(error))
            if counts is not None:
                return counts
        noted = self._noting(1 if is_small else len(commit.ends))
        rows = {**plan.rows, **batch_columns(commit.id, began)}
        observation = Observation()
        # The rows as they are written are made before they are looked at: Spark copies each
        # where it is observed, and so need not copy the bytes that it was decoded from.
        observed = (
            plan.validator.validate(records)
            .records.select(*(rows[name] for name in plan.layout.columns.names), *noted.notes)
            .observe(observation, *noted.counters)
        )
        good = observed.where("not _millrace_bad").drop(*bronze.WORKING)
        self._lease.stage(partial(append_rows, good.coalesce(1) if is_small else good, commit))
        # The JVM's own row: the bad records need not pass through Python.
        return self._counts(observed_row(observation))

    def _stage_frames(
        self, plan: _Plan, maker: FrameMaker, commit: Commit, began: datetime
    ) -> _Counts | None:
        """Stage a batch as frames; None, with nothing staged, where Spark must validate all."""
        # What is a few files' worth needs no more tasks, and many partitions no file each.
        most = max(self._spark.sparkContext.defaultParallelism, len(commit.ends))
        tasks = min(max(_size(commit) // SMALL, 1), most)
        name, starts, ends = self._topic.name, commit.starts, commit.ends
        read = kafka_records(self._spark, self._consumer_options, name, starts, ends, tasks)
        topic, most_left = (name, self._topic.id), _LEFT_BYTES // tasks
        frames = maker.of_batch(self._spark, topic, commit.id, began, most_left).in_tasks(read)
        observation = Observation()
        observed = frames.observe(observation, *frame_counters()).select("frame")
        written = self._lease.stage(partial(append_frames, observed, plan.layout, commit))
        return self._checked(observed_counts(observation), written, plan)

    def _stage_frame(
        self, plan: _Plan, maker: FrameMaker, commit: Commit, began: datetime
    ) -> _Counts | None:
        """Stage a few records where the driver is: as :meth:`_stage_frames` else."""
        topic = (self._topic.name, self._topic.id)
        try:
            read = self._few.read(commit.starts, commit.ends)
            made = maker.of_batch(self._spark, topic, commit.id, began, _LEFT_BYTES).here(read)
        except JAVA_ERRORS as error:
            # Where its consumer stands now is not known.
            self._few.close()
            raise FilesNotWritten(f"{self._stream.table}: {java_reason(error)}") from error
        if made is None:
            return None
        frame, counts = made
        write = partial(append_frame, self._spark, frame, plan.layout, commit)
        return self._checked(counts, self._lease.stage(write), plan)

    def _note_by_rows(self, reason: str) -> None:
        """Say once why batches that could not be staged as frames go by Spark's rows."""
        if reason not in self._reasons:
            self._reasons.add(reason)
            self._note(f"{reason}: Iceberg's own writer takes a batch that Arrow did not write")

    def _checked(self, frames: FrameCounts, written: int, plan: _Plan) -> _Counts | None:
        """The counts of a batch that is staged as frames.

        None, with nothing staged, where Spark must validate all of the batch.
        """
        if written != frames.rows:
            raise MillraceError(
                f"{self._stream.table}: {written} rows were written of {frames.rows} good records: "
                "nothing is committed"
            )
        bad, carried, unknown = 0, None, {}
        if frames.left:
            validated = self._counts_of_left(self._jvm.dataframe(frames.records, KAFKA_ROWS), plan)
            if validated.rows != frames.left or validated.bad != frames.left:
                # More than were carried, or some that are good after all.
                self._lease.unstage()
                return None
            bad, carried, unknown = validated.bad, validated.carried, validated.unknown_ids
        return _Counts(
            frames.rows + bad, bad, frames.value_bytes, frames.other_bytes, unknown, carried
        )

    def _counts_of_left(self, left: DataFrame, plan: _Plan) -> _Counts:
        """The counts of records that frames left, validated."""
        noted = self._noting(1)
        records = plan.validator.validate(left).records
        counted = records.select("_kafka_key", "_kafka_headers", *noted.notes).agg(*noted.counters)
        return self._counts(self._jvm.first_row(counted))

    def _counts(self, row: Any) -> _Counts:
        """What :func:`batch_counters` counted, of the JVM's row of it."""
        bad, carried = row.getLong(1), row.getSeq(4)
        return _Counts(
            rows=row.getLong(0),
            bad=bad,
            value_bytes=row.getLong(2),
            other_bytes=row.getLong(3),
            unknown_ids={part: _numbers(row.getSeq(5 + i)) for i, part in enumerate(self._parts)},
            # Where some are missing all are read again: these would only take memory.
            carried=self._jvm.dataframe(carried, quarantine_table.COLUMNS)
            if carried.size() == bad
            else None,
        )

    def _noting(self, tasks: int) -> _Noted:
        """What is noted of records that come in so many tasks."""
        noted = self._noted.get(tasks)
        if noted is None:
            most, largest = carried_limits(self._carried_bytes, tasks)
            noted = _Noted(record_notes(self._parts, largest), batch_counters(self._parts, most))
            self._noted[tasks] = noted
        return noted


def carried_limits(budget: int, tasks: int) -> tuple[int, int]:
    """How many bad records a task may bring along, and how large each may be.

    ``budget`` is the bytes of all tasks together.
    """
    share = budget // tasks
    largest = max(min(_LARGEST_CARRIED, share - _ROW_BYTES), 0)
    return max(share // (largest + _ROW_BYTES), 1), largest


def _carried_bytes(spark: SparkSession) -> int:
    """Bytes of bad records that a batch may bring to the driver."""
    most = Jvm(spark).most_result_bytes()
    # 0 is without a limit.
    return min(_CARRIED_BYTES, most // _SHARE_OF_RESULTS) if most else _CARRIED_BYTES


def record_notes(parts: list[str], largest: int) -> tuple[Column, ...]:
    """What is noted of each record of a batch besides its row.

    ``parts`` are those whose schema ids are looked up; ``largest`` is the most bytes of a bad
    record that is carried along.
    """
    bad = F.col("_error").isNotNull()
    length = F.coalesce(F.length("_kafka_value"), F.lit(0))
    whole = length + key_and_header_bytes("_kafka_")
    aside = F.struct(*quarantine_table.rows("_error", F.lit(None)))
    unknown = [unknown_id(part).alias(f"_millrace_unknown_{part}") for part in parts]
    return (
        bad.alias("_millrace_bad"),
        length.alias("_millrace_bytes"),
        F.when(bad & (whole <= largest), aside).alias("_millrace_carried"),
        *unknown,
    )


def batch_counters(parts: list[str], most: int) -> tuple[Column, ...]:
    """What is counted and collected of the notes of :func:`record_notes`.

    ``parts`` are those whose schema ids are looked up; ``most`` is how many bad records are
    carried along.
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
    """How many offsets a commit takes."""
    return sum(end - commit.starts.get(partition, 0) for partition, end in commit.ends.items())


def _numbers(sequence: Any) -> list[int]:
    return [sequence.apply(i) for i in range(sequence.size())]
