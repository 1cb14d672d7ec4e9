"""Kafka's records to frames of a bronze table's rows, decoded column by column in Java.

Spark makes a row of each value that it decodes, and of each row another as the table has it. For
streams of many records ``ArrowFrames.java`` writes what is good beyond doubt straight into Arrow's
vectors, by the same walk over the bytes that checks them (``AvroWalk.java``). All else stays as it
is, for :mod:`spark_ingest.records.verdict` to judge, whose rules count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, LongType, StructField, StructType

from spark_ingest.avro.evolution import TopicSchema
from spark_ingest.avro.framing import Part
from spark_ingest.avro.reader_schemas import WRAPPED, Reading
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_object
from spark_ingest.records import java_checks
from spark_ingest.records.avro_check import WALK

_CLASSES = (*WALK, "ArrowColumns", "PartitionColumns", "ArrowFrames")
# Of Kafka's rows, in the order in which ArrowFrames takes their places.
_TAKEN = ("key", "value", "partition", "offset", "timestamp", "headers")


@dataclass(frozen=True)
class FrameMaker:
    """What makes frames of a stream's records, until a schema comes: :func:`frame_maker`."""

    plan: dict[str, Any]
    spec: Any

    def frames(
        self,
        records: DataFrame,
        tasks: int,
        topic: tuple[str, str],
        commit_id: int,
        began: datetime,
        most_left: int,
    ) -> DataFrame:
        """Frames of a batch.

        Args:
            records: Rows of Spark's Kafka source, with headers.
            tasks: The most that read them.
            topic: Its name and Kafka's UUID.
            commit_id: Of the commit that will publish them.
            began: ``_ingested_at``.
            most_left: Bytes of records that a task may leave as they are.

        Returns:
            ``frame``, and what :func:`frame_counters` counts.
        """
        spark = records.sparkSession
        constants = {
            "_kafka_topic": topic[0],
            "_kafka_topic_id": topic[1],
            "_ingested_at": round(began.timestamp() * 1_000_000),
            "_commit_id": commit_id,
        }
        places = [records.columns.index(name) for name in _TAKEN]
        function = _function(
            spark,
            {**self.plan, "constants": constants, "places": places, "most_left": most_left},
            self.spec,
        )
        counts = ("rows", "left", "value_bytes", "other_bytes")
        schema = StructType(
            [
                StructField("frame", BinaryType()),
                *(StructField(name, LongType()) for name in counts),
                StructField("records", ArrayType(records.schema)),
            ]
        )
        return Jvm(spark).partitions_mapped(records, tasks, function, schema)


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
    parts = [part for part in (value, key) if part is not None]
    if not all(_is_taken(part) for part in parts):
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
    trial = _function(spark, {**plan, "constants": {}, "places": [], "most_left": 0}, spec)
    try:
        trial.check()
    except JAVA_ERRORS:
        return None
    return FrameMaker(plan, spec)


def _function(spark: SparkSession, plan: dict[str, Any], spec: Any) -> Any:
    sources = [java_checks.SOURCES / f"{name}.java" for name in _CLASSES]
    return java_object(spark, sources, json.dumps(plan), spec)


def frame_counters() -> tuple[Column, ...]:
    """What is counted of frames: rows, records that are left, bytes of values, of all else.

    And the records that are left, as they came; fewer where a task stopped at what it may carry.
    """
    counts = ("rows", "left", "value_bytes", "other_bytes")
    sums = [F.coalesce(F.sum(name), F.lit(0)) for name in counts]
    return (*sums, F.flatten(F.collect_list("records")))


def _is_taken(schema: TopicSchema) -> bool:
    """Whether Java decodes these: no JSON, and no type that contains itself, which becomes that."""
    return schema.usable and schema.framing.format != "json" and not schema.texts


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
