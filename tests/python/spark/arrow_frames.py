"""Frames of Kafka's records, made and read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import Jvm, java_object
from spark_ingest.records.frames import frame_maker
from spark_ingest.records.validation import KAFKA_ROWS, Validated
from tests.python.spark.avro_columns import plain

BEGAN = datetime(2024, 1, 2, 3, 4, 5, 678901, UTC)
TOPIC = ("t", "id")


@dataclass(frozen=True)
class Framed:
    """Records as frames.

    Attributes:
        rows: Those that are rows of the table, in order of their offsets.
        left: Offsets of those that are left as they are.
        counts: Of rows, of records left, bytes of values, and of all else.
    """

    rows: Any
    left: list[int]
    counts: tuple[int, ...]


def kafka_rows(records: DataFrame) -> Any:
    """Rows of Spark's Kafka source, ``KAFKA_ROWS``, as a ``JavaRDD`` of Kafka's records."""
    java: Any = records._jdf
    return java.queryExecution().toRdd().toJavaRDD().mapPartitions(_as_records(records))


def kafka_rows_here(records: DataFrame) -> Any:
    """Rows of :func:`kafka_rows` as an iterator of Kafka's records, without a task."""
    java: Any = records._jdf
    rows = java.queryExecution().executedPlan().executeToIterator()
    converters = Jvm(records.sparkSession).packages.scala.jdk.javaapi.CollectionConverters
    return _as_records(records).call(converters.asJava(rows))


def _as_records(records: DataFrame) -> Any:
    return java_object(records.sparkSession, [Path(__file__).with_name("RowsAsRecords.java")])


def frames_of(
    validated: Validated, records: DataFrame, most_left: int = 2**30, longest: int = 2**24
) -> Framed | None:
    """Frames of records, for the table that they would be written to when validated.

    None where Spark alone can decode them.
    """
    spark = records.sparkSession
    columns = bronze.table_columns(validated.schema())
    spec = getattr(Jvm(spark).packages, "org.apache.iceberg.PartitionSpec").unpartitioned()
    nothing = StructType([])
    made = frame_maker(spark, columns, nothing, spec, validated.value, validated.key, longest)
    if made is None:
        return None
    frames = made.of_batch(spark, TOPIC, 7, BEGAN, most_left)
    found = frames.in_tasks(kafka_rows(records)).collect()
    rows = pa.concat_tables(pa.ipc.open_stream(bytes(each)).read_all() for each in found)
    counts = frames.counts()
    left = []
    if counts.records is not None:
        left = Jvm(spark).dataframe(counts.records, KAFKA_ROWS).collect()
    offsets = sorted(record.offset for record in left)
    sizes = (counts.rows, counts.left, counts.value_bytes, counts.other_bytes)
    return Framed(rows.sort_by("_kafka_offset"), offsets, sizes)


def agree(validated: Validated, records: DataFrame) -> None:
    """Compare frames of records, if there are, with their validation by Spark."""
    made = frames_of(validated, records)
    if made is None:
        return
    columns = [column.alias(name) for name, column in validated.columns.items()]
    sound = F.col("_error").isNull().alias("is_good")
    rows = validated.records.orderBy("_kafka_offset").select("_kafka_offset", sound, *columns)
    table = rows.toArrow()
    assert made.left == table.filter(pc.invert(table["is_good"]))["_kafka_offset"].to_pylist()
    good = table.filter(table["is_good"])
    assert made.rows["_kafka_offset"] == good["_kafka_offset"]
    for name in validated.columns:
        ours, theirs = (list(plain(each[name].combine_chunks())) for each in (made.rows, good))
        assert ours == theirs, name
