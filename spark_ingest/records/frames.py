"""Decodes Kafka records to frames of a bronze table's rows, column by column in Java.

Spark copies each record several times: as a row of Kafka's source, as decoded values, and as a
row of the table. Here the records of a Kafka consumer (``KafkaRecords.java``) are written directly
to Arrow vectors (``ArrowFrames.java``) if they are certainly valid, by the same walk over the
bytes that checks them (``AvroWalk.java``). All other records are returned undecoded, for
:mod:`spark_ingest.records.validation`, whose rules are authoritative.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from spark_ingest.avro.evolution import TopicSchema
from spark_ingest.avro.framing import Part
from spark_ingest.avro.reader_schemas import WRAPPED, Reading
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_object
from spark_ingest.records import java_checks
from spark_ingest.records.avro_check import WALK
from spark_ingest.records.validation import KAFKA_ROWS

_READER = ("KafkaRecords",)
_FRAMES = (*WALK, "ArrowColumns", "PartitionColumns", "GlueInflate", "ArrowFrames")
# Timeout in milliseconds without a record.
_PATIENCE = 60_000
_PATIENCE_WITH_FEW = 10_000
_COUNTS = StructType(
    [
        *(StructField(n, LongType()) for n in ("rows", "left", "value_bytes", "other_bytes")),
        StructField("records", ArrayType(KAFKA_ROWS)),
    ]
)


@dataclass(frozen=True)
class FrameCounts:
    """Counters of a batch's frames.

    Attributes:
        rows: Rows in the frames.
        left: Number of undecoded records.
        value_bytes: Bytes of all records' values.
        other_bytes: Approximate bytes of their keys and headers.
        records: The undecoded records, a Scala sequence of rows of Spark's Kafka source; fewer
            if a task reached its limit, None if there are none.
    """

    rows: int
    left: int
    value_bytes: int
    other_bytes: int
    records: Any


@dataclass(frozen=True)
class BatchFrames:
    """Creates the frames of a batch: :meth:`FrameMaker.of_batch`."""

    spark: SparkSession
    function: Any

    def in_tasks(self, records: Any) -> Any:
        """Frames of many records, in tasks, as a ``JavaRDD`` of byte arrays.

        ``records`` is a ``JavaRDD`` from :func:`kafka_records`.
        """
        return records.mapPartitions(self.function)

    def here(self, records: Any) -> bytes | None:
        """The frame of a few records, created in the driver.

        ``records`` is a Java iterator from :class:`FewRecords`. None if they do not fit into one
        frame.
        """
        frame = self.function.only(records)
        return None if frame is None else bytes(frame)

    def counts(self) -> FrameCounts:
        """The counters of frames that were created, in tasks after their job has succeeded."""
        total = self.function.total()
        rows, left, value_bytes, other_bytes = (total.getLong(i) for i in range(4))
        records = Jvm(self.spark).row_of(total, _COUNTS).getSeq(4) if left else None
        return FrameCounts(rows, left, value_bytes, other_bytes, records)


@dataclass(frozen=True)
class FrameMaker:
    """Creates frames of a stream's records until its schemas change: :func:`frame_maker`."""

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
        """Bind it to a batch.

        Args:
            spark: The session.
            topic: Its name and Kafka's UUID.
            commit_id: The id of the commit that will publish them.
            began: ``_ingested_at``.
            most_left: Maximum bytes of undecoded records per task, or in the driver.
        """
        constants = {
            "_kafka_topic": topic[0],
            "_kafka_topic_id": topic[1],
            "_ingested_at": round(began.timestamp() * 1_000_000),
            "_commit_id": commit_id,
        }
        plan = {**self.plan, "constants": constants, "most_left": most_left}
        return BatchFrames(spark, _frames(spark, plan, self.spec))


class FewRecords:
    """Reads small batches in the driver, with a consumer that is reused until closed.

    Planning a Spark job and starting tasks takes longer than reading a few records.
    """

    def __init__(self, spark: SparkSession, options: Mapping[str, str], topic: str) -> None:
        """Without a connection yet. The arguments are those of :func:`kafka_records`."""
        self._spark = spark
        self._arguments = (dict(options), topic, _PATIENCE_WITH_FEW)
        self._reader: Any = None

    def read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Any:
        """Records of a topic, as a Java iterator of ``ConsumerRecord``.

        It fails if records have expired, or none arrives within the timeout. The arguments are
        those of :func:`kafka_records`.
        """
        if self._reader is None:
            self._reader = _java(self._spark, _READER, *self._arguments)
        ranges = shares(starts, ends, 1)
        return self._reader.here(ranges[0] if ranges else [])

    def close(self) -> None:
        """Close the consumer; a later :meth:`read` creates a new one."""
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
    """Read records of a topic in tasks with Kafka consumers, without Spark's source.

    Args:
        options: Options of Kafka's Java consumer.
        topic: Its name.
        starts: Start offset by partition, inclusive; the earliest if missing.
        ends: End offset by partition, exclusive.
        tasks: Maximum number of tasks.

    Returns:
        A ``JavaRDD`` of ``ConsumerRecord``. A task fails if records have expired, or none arrives
        for a minute.
    """
    function = _java(spark, _READER, dict(options), topic, _PATIENCE)
    return Jvm(spark).parallelized(shares(starts, ends, tasks)).mapPartitions(function)


def shares(starts: Mapping[int, int], ends: Mapping[int, int], tasks: int) -> list[list[list[int]]]:
    """Split ranges of offsets into at most ``tasks`` shares of about the same size.

    The arguments are those of :func:`kafka_records`.

    Returns:
        Per share, lists of partition, start offset (-1 for the earliest) and end offset,
        exclusive. A partition that starts at the earliest offset is not split.
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
    """A maker of frames for some schemas; None if only Spark can decode them.

    Args:
        columns: The table's columns.
        partition: The columns of the partition's values, which follow them.
        spec: Iceberg's ``PartitionSpec`` of the table.
        value: The schemas of the values.
        key: The schemas of the keys, if they are decoded.
        longest: Maximum bytes of a value, and of a key.
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
    try:
        _frames(spark, {**plan, "constants": {}, "most_left": 0}, spec).check()
    except JAVA_ERRORS:
        return None
    return FrameMaker(plan, spec)


def _frames(spark: SparkSession, plan: Mapping[str, Any], spec: Any) -> Any:
    """The Java function that creates frames."""
    return _java(spark, _FRAMES, json.dumps(plan), spec, Jvm(spark).accumulator())


def _java(spark: SparkSession, classes: tuple[str, ...], *arguments: Any) -> Any:
    """A new instance of the last of some classes, which may use those before it."""
    sources = [java_checks.SOURCES / f"{name}.java" for name in classes]
    return java_object(spark, sources, *arguments)


def row_by_row(value: TopicSchema, key: TopicSchema | None) -> str | None:
    """Why a stream's records must be decoded by Spark; None if frames can decode them.

    ``key`` has the schemas of the keys, if they are decoded.
    """
    for part, schema in (("value", value), ("key", key)):
        if schema is not None and schema.framing.format == "json":
            return f"its {part}s are JSON"
        if schema is not None and schema.texts:
            return f"{', '.join(schema.texts)} of its {part}s has a recursive type"
    return None


def _payload(part: Part, schema: TopicSchema, name: str | None) -> dict[str, Any]:
    framing = schema.framing
    return {
        "format": framing.format,
        "id_bytes": framing.id_bytes,
        "header": framing.header(part) if framing.in_header else None,
        "marker": list(framing.marker),
        "begin": framing.begin,
        "may_be_compressed": framing.may_be_compressed,
        "name": name,
        "member": schema.member,
        "readings": [_reading(reading, schema.wrapped) for reading in schema.readings],
    }


def _reading(reading: Reading, is_wrapped: bool) -> dict[str, Any]:
    writer: Any = reading.writer
    reader: Any = reading.reader
    if is_wrapped:
        # A record with one field has the same bytes as the field.
        writer = writer["fields"][0]["type"]
        reader = reader["fields"][0]["type"] if reader["fields"] else None
    as_read = None if reader is None else json.dumps(reader)
    return {"ids": reading.ids, "writer": json.dumps(writer), "reader": as_read}
