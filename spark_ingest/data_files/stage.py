"""Writes the data files of a bronze table.

Frames (Arrow IPC streams) go to Spark's Python workers, where Arrow C++ converts them to Parquet,
and JVM tasks write the bytes with the table's location provider and FileIO. Files of failed or
duplicate task attempts are not in the result, and so in no commit. One frame of a few rows takes
the same steps in the driver. Iceberg's own writer writes rows of Spark, and commits them to a
branch.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from spark_ingest.commits.committed import Commit
from spark_ingest.data_files import parquet
from spark_ingest.errors import ColumnsChanged, FilesNotWritten
from spark_ingest.lake.jvm import (
    CATALOG,
    JAVA_ERRORS,
    Jvm,
    drained,
    java_object,
    reason_text,
)
from spark_ingest.lake.table_change import conflict_refused

# Spark's errors for a plan whose table was changed concurrently.
_OTHER_COLUMNS = ("INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS", "INCOMPATIBLE_DATA_FOR_TABLE")
_WRITER = Path(__file__).with_name("DataFileWriter.java")
# Codecs with another name in Arrow.
_CODECS = {"uncompressed": "none"}


@dataclass(frozen=True)
class Layout:
    """The columns of a table's frames: :func:`layout`.

    Attributes:
        schema_id: Iceberg's id of the table's schema.
        spec: Iceberg's ``PartitionSpec``.
        columns: The table's columns.
        partition: The columns of the partition's values, which follow them.
    """

    schema_id: int
    spec: Any
    columns: StructType
    partition: StructType

    def is_of(self, iceberg: Any) -> bool:
        """Whether an Iceberg table has this schema and partition spec."""
        is_spec = iceberg.spec().specId() == self.spec.specId()
        return bool(is_spec and iceberg.schema().schemaId() == self.schema_id)


def layout(jvm: Jvm, iceberg: Any) -> Layout:
    """The current layout of an Iceberg table."""
    schema, spec = iceberg.schema(), iceberg.spec()
    columns, values = jvm.struct_of(schema), jvm.struct_of(spec.partitionType().asSchema())
    prefix = "_partition_"
    while any(name.lower().startswith(prefix) for name in columns.names):
        prefix += "_"
    partition = [StructField(f"{prefix}{at}", f.dataType) for at, f in enumerate(values)]
    return Layout(schema.schemaId(), spec, columns, StructType(partition))


def write_frames(spark: SparkSession, frames: Any, of: Layout, table: str) -> list[Any]:
    """Write frames to data files of a table, in tasks.

    Args:
        spark: The session.
        frames: A ``JavaRDD`` of Arrow IPC streams as byte arrays, each with rows of the table.
        of: The layout of the frames.
        table: ``schema.name``.

    Returns:
        Iceberg's ``DataFile`` of each file, which is in no commit.

    Raises:
        FilesNotWritten: A worker has no pyarrow, or failed.
        ColumnsChanged: The schema or the partition spec of the table has changed.
    """
    iceberg = Jvm(spark).iceberg_table(table)
    if not of.is_of(iceberg):
        raise ColumnsChanged(f"the schema of {table} changed concurrently")
    return _written(partial(_in_tasks, spark, frames, of, iceberg), iceberg)


def write_frame(spark: SparkSession, frame: bytes, of: Layout, iceberg: Any) -> list[Any]:
    """Write one frame in the driver, without tasks; otherwise as :func:`write_frames`.

    ``iceberg`` is the table as it was when the frame was planned: loading it again would be a
    tenth of a small batch.
    """
    return _written(partial(_in_driver, spark, frame, of, iceberg), iceberg)


def _written(write: Callable[[], list[Any]], iceberg: Any) -> list[Any]:
    try:
        return write()
    except (*JAVA_ERRORS, pa.ArrowException) as error:
        raise FilesNotWritten(f"{iceberg.name()}: {reason_text(error)}") from error


def append_rows(rows: DataFrame, commit: Commit, table: str, branch: str) -> None:
    """Write rows, with the table's columns in order, to a branch with Iceberg's own writer.

    ``commit`` is for the snapshot's summary.

    Raises:
        ColumnsChanged: The table's columns have changed since the rows were planned.
        CommitRefused: Others kept changing the table.
    """
    writer = rows.writeTo(f"{CATALOG}.{table}.branch_{branch}")
    for key, value in commit.summary().items():
        writer = writer.option(f"snapshot-property.{key}", value)
    try:
        with conflict_refused(table):
            writer.append()
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_OTHER_COLUMNS):
            raise ColumnsChanged(f"the schema of {table} changed concurrently") from error
        raise


def _in_tasks(spark: SparkSession, frames: Any, of: Layout, iceberg: Any) -> list[Any]:
    jvm = Jvm(spark)
    form = _format(iceberg, jvm.schema_json(iceberg.schema()), tuple(of.partition.names))
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(parquet)
    parts = jvm.in_workers(frames, parquet.parquet_parts(form))
    written = parts.mapPartitions(_writer(spark, jvm.serializable(iceberg))).collect()
    return drained(written.iterator())


def _in_driver(spark: SparkSession, frame: bytes, of: Layout, iceberg: Any) -> list[Any]:
    jvm = Jvm(spark)
    form = _format(iceberg, jvm.schema_json(iceberg.schema()), tuple(of.partition.names))
    parts = jvm.byte_arrays(parquet.parquet_parts(form)([frame]))
    return drained(_writer(spark, iceberg).call(parts.iterator()))


def _writer(spark: SparkSession, iceberg: Any) -> Any:
    return java_object(spark, [_WRITER], iceberg, secrets.token_hex(8))


def _format(iceberg: Any, schema: str, partition: tuple[str, ...]) -> parquet.Format:
    """The format of Parquet files by the table's properties."""
    properties = iceberg.properties()

    def number(name: str, default: int) -> int:
        return int(properties.getOrDefault(f"write.{name}", str(default)))

    codec = properties.getOrDefault("write.parquet.compression-codec", "zstd").lower()
    level = properties.get("write.parquet.compression-level")
    return parquet.Format(
        schema,
        partition,
        _CODECS.get(codec, codec),
        None if level is None else int(level),
        number("parquet.dict-size-bytes", 2 * 2**20),
        number("parquet.page-size-bytes", 2**20),
        number("parquet.row-group-size-bytes", 128 * 2**20),
        number("target-file-size-bytes", 512 * 2**20),
    )
