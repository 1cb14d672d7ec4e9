"""Kafka's records to frames of a bronze table's rows, decoded column by column in Java.

Spark makes rows of what Kafka gives, of each value that it decodes, and of each row another as the
table has it. Where frames take a batch a consumer's own records (``KafkaRecords.java``) are
written straight into Arrow's vectors (``ArrowFrames.java``) where they are good beyond doubt, by
the same walk over the bytes that checks them (``AvroWalk.java``). All else stays as it is, for
:mod:`spark_ingest.records.validation` to validate, whose rules count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from spark_ingest.avro.evolution import TopicSchema
from spark_ingest.avro.framing import Part
from spark_ingest.avro.reader_schemas import WRAPPED, Reading
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_object, observed_row
from spark_ingest.records import java_checks
from spark_ingest.records.avro_check import WALK
from spark_ingest.records.validation import KAFKA_ROWS

_READER = ("KafkaRecords",)
_FRAMES = (*WALK, "ArrowColumns", "PartitionColumns", "ArrowFrames")
# Milliseconds in which some record has to come.
_PATIENCE = 60_000
_PATIENCE_WITH_FEW = 10_000
_COUNTS = ("rows", "left", "value_bytes", "other_bytes")
_ROWS = StructType(
    [
        StructField("frame", BinaryType()),
        *(StructField(name, LongType()) for name in _COUNTS),
        StructField("records", ArrayType(KAFKA_ROWS)),
    ]
)


@dataclass(frozen=True)
class FrameCounts:
    """What is counted of a batch's frames.

    Attributes:
        rows: Of the frames.
        left: Records that are left as they are.
        value_bytes: Of all records' values.
        other_bytes: Of their keys and headers, about.
        records: Those that are left, a Scala sequence of rows as Spark's Kafka source gives them;
            fewer where a task stopped at what it may carry, None where none are.
    """

    rows: int
    left: int
    value_bytes: int
    other_bytes: int
    records: Any


@dataclass(frozen=True)
class BatchFrames:
    """What makes the frames of a batch: :meth:`FrameMaker.of_batch`."""

    spark: SparkSession
    function: Any

    def in_tasks(self, records: Any) -> DataFrame:
        """Frames of many records, each task's of its own.

        ``records`` is a ``JavaRDD`` of Kafka's own, as :func:`kafka_records` reads them. The rows
        have ``frame``, and what :func:`frame_counters` counts.
        """
        return Jvm(self.spark).data_frame_of(records.mapPartitions(self.function), _ROWS)

    def here(self, records: Any) -> tuple[bytes, FrameCounts] | None:
        """The frame of a few records, made where the driver is, and what is counted of it.

        ``records`` is a Java iterator of Kafka's own, as :class:`FewRecords` reads them. None
        where they make more than one frame.
        """
        made = self.function.only(records)
        if made is None:
            return None
        frame = made.getBinary(0)
        rows, left, value_bytes, other_bytes = (made.getLong(i) for i in range(1, 5))
        rest = None
        if left:
            made.setNullAt(0)
            rest = Jvm(self.spark).row_of(made, _ROWS).getSeq(5)
        return frame, FrameCounts(rows, left, value_bytes, other_bytes, rest)


@dataclass(frozen=True)
class FrameMaker:
    """What makes frames of a stream's records, until a schema comes: :func:`frame_maker`."""

    plan: dict[str, Any]
    spec: Any

    def of_batch(
        self,
        spark: SparkSession,
        topic: tuple[str, str],
        commit_id: int,
        began: datetime,
        most_left: int,
    ) -> BatchFrames:
        """What makes the frames of a batch.

        Args:
            spark: The session.
            topic: Its name and Kafka's UUID.
            commit_id: Of the commit that will publish them.
            began: ``_ingested_at``.
            most_left: Bytes of records that a task, or the driver, may leave as they are.
        """
        constants = {
            "_kafka_topic": topic[0],
            "_kafka_topic_id": topic[1],
            "_ingested_at": round(began.timestamp() * 1_000_000),
            "_commit_id": commit_id,
        }
        plan = {**self.plan, "constants": constants, "most_left": most_left}
        return BatchFrames(spark, _java(spark, _FRAMES, json.dumps(plan), self.spec))


class FewRecords:
    """Reads batches of a few records where the driver is, by a consumer that stays until closed.

    Spark plans a job and starts tasks for longer than a few records take.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str], topic: str) -> None:
        """Read nothing yet. The arguments are those of :func:`kafka_records`."""
        self._spark = spark
        self._arguments = (dict(options), topic, _PATIENCE_WITH_FEW)
        self._reader: Any = None

    def read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Any:
        """Records of a topic, as an iterator of Java's ``ConsumerRecord``.

        It fails where records are gone, or none comes for a while. The arguments are those of
        :func:`kafka_records`.
        """
        if self._reader is None:
            self._reader = _java(self._spark, _READER, *self._arguments)
        ranges = shares(starts, ends, 1)
        return self._reader.here(ranges[0] if ranges else [])

    def close(self) -> None:
        """End the consumer; another one reads on where there is more to read."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def kafka_records(
    spark: SparkSession,
    options: Mapping[str, str],
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    tasks: int,
) -> Any:
    """Records of a topic, read by consumers of our own.

    Args:
        options: A consumer's.
        topic: Its name.
        starts: The first offset by partition; the earliest for one that is missing.
        ends: The one behind the last.
        tasks: The most that read them.

    Returns:
        A ``JavaRDD`` of ``ConsumerRecord``. Where records are gone, or none comes for a minute,
        its task fails.
    """
    function = _java(spark, _READER, dict(options), topic, _PATIENCE)
    return Jvm(spark).parallelized(shares(starts, ends, tasks)).mapPartitions(function)


def shares(starts: Mapping[int, int], ends: Mapping[int, int], tasks: int) -> list[list[list[int]]]:
    """Ranges of offsets in as many shares, as far as there are offsets, of about one size.

    The arguments are those of :func:`kafka_records`.

    Returns:
        Of each share partition, first offset (-1 for the earliest) and the one behind the last.
        A partition of which the earliest is asked for is in one share.
    """
    sizes = {partition: end - starts.get(partition, 0) for partition, end in ends.items()}
    each = max(-(-sum(sizes.values()) // tasks), 1)
    found: list[list[list[int]]] = [[]]
    room = each
    for partition in sorted(ends):
        here, end = starts.get(partition, -1), ends[partition]
        while sizes[partition] > 0:
            to = min(here + room, end) if here >= 0 else end
            found[-1].append([partition, here, to])
            taken = to - max(here, 0)
            sizes[partition] -= taken
            room -= taken
            here = to
            if room <= 0:
                found.append([])
                room = each
    return [share for share in found if share]


def frame_maker(
    spark: SparkSession,
    columns: StructType,
    partition: StructType,
    spec: Any,
    value: TopicSchema,
    key: TopicSchema | None,
    longest: int,
) -> FrameMaker | None:
    """What makes frames of records of some schemas; None where only Spark can decode them.

    Args:
        columns: The table's.
        partition: Those of the partition's values, which stand behind them.
        spec: Iceberg's ``PartitionSpec`` of the table.
        value: The schemas of the values.
        key: Those of the keys where they are decoded.
        longest: Most bytes of a value, and of a key.
    """
    if not value.usable or (key is not None and not key.usable) or row_by_row(value, key):
        return None
    ours = {bronze.KEY, *bronze.METADATA.names}
    has_key = key is not None and bronze.KEY in columns.names
    plan = {
        "schema": Jvm(spark).arrow_schema(StructType([*columns, *partition])),
        "columns": [name for name in columns.names if name not in ours],
        "key_columns": [bronze.KEY] if has_key else [],
        "value": _payload("value", value, None if value.is_record else WRAPPED),
        "key": None if key is None else _payload("key", key, bronze.KEY if has_key else None),
        "longest": longest,
    }
    trial = _java(spark, _FRAMES, json.dumps({**plan, "constants": {}, "most_left": 0}), spec)
    try:
        trial.check()
    except JAVA_ERRORS:
        return None
    return FrameMaker(plan, spec)


def _java(spark: SparkSession, classes: tuple[str, ...], *arguments: Any) -> Any:
    """An object of the last of some classes, which may use those before it."""
    sources = [java_checks.SOURCES / f"{name}.java" for name in classes]
    return java_object(spark, sources, *arguments)


def frame_counters() -> tuple[Column, ...]:
    """What is counted of frames while they are read: :func:`observed_counts`."""
    sums = [F.coalesce(F.sum(name), F.lit(0)) for name in _COUNTS]
    return (*sums, F.flatten(F.collect_list("records")))


def observed_counts(observation: Observation) -> FrameCounts:
    """What :func:`frame_counters` counted."""
    row = observed_row(observation)
    rows, left, value_bytes, other_bytes = (row.getLong(i) for i in range(4))
    return FrameCounts(rows, left, value_bytes, other_bytes, row.getSeq(4))


def row_by_row(value: TopicSchema, key: TopicSchema | None) -> str | None:
    """Why only Spark can decode a stream's records, whatever their number; None where it need not.

    ``key`` has the schemas of the keys where they are decoded.
    """
    for part, schema in (("value", value), ("key", key)):
        if schema is not None and schema.framing.format == "json":
            return f"its {part}s are JSON"
        if schema is not None and schema.texts:
            return f"{', '.join(schema.texts)} of its {part}s has a type that contains itself"
    return None


def _payload(part: Part, schema: TopicSchema, name: str | None) -> dict[str, Any]:
    framing = schema.framing
    return {
        "format": framing.format,
        "id_bytes": framing.id_bytes,
        "header": framing.header(part) if framing.in_header else None,
        "name": name,
        "member": schema.member,
        "readings": [_reading(reading, schema.wrapped) for reading in schema.readings],
    }


def _reading(reading: Reading, is_wrapped: bool) -> dict[str, Any]:
    writer: Any = reading.writer
    reader: Any = reading.reader
    if is_wrapped:
        # The bytes of a record with one field are those of the field.
        writer = writer["fields"][0]["type"]
        reader = reader["fields"][0]["type"] if reader["fields"] else None
    as_read = None if reader is None else json.dumps(reader)
    return {"ids": reading.ids, "writer": json.dumps(writer), "reader": as_read}
