"""Rows staged on a branch of a bronze table.

Many come as frames, Arrow IPC streams, to Spark's Python workers, where Arrow C++ makes Parquet of
them, and the JVM's tasks put that where the table's location provider and FileIO say. Files of
tasks that failed, or that ran twice, are in no answer, and so in no commit. One frame of a few rows
takes the same steps without a task, and Spark's rows are written by Iceberg's own writer.
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

from spark_ingest.commits.branch import append_files
from spark_ingest.commits.committed import Commit
from spark_ingest.data_files import parquet
from spark_ingest.errors import ColumnsChanged, FilesNotWritten
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm, java_object, reason_text
from spark_ingest.lake.table_change import conflict_refused

# What Spark calls a plan whose table has changed, by a stream or a replay, since it was made.
_OTHER_COLUMNS = ("INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS", "INCOMPATIBLE_DATA_FOR_TABLE")
_WRITER = Path(__file__).with_name("DataFileWriter.java")
# Codecs that Arrow calls otherwise.
_CODECS = {"uncompressed": "none"}


@dataclass(frozen=True)
class Layout:
    """What the rows of a table's files have: :func:`layout`.

    Attributes:
        schema_id: Iceberg's number of the table's schema.
        spec: Iceberg's ``PartitionSpec``.
        columns: The table's.
        partition: Those of the partition's values, which stand behind them.
    """

    schema_id: int
    spec: Any
    columns: StructType
    partition: StructType

    def is_of(self, iceberg: Any) -> bool:
        """Whether an Iceberg table has these columns and this partition."""
        is_spec = iceberg.spec().specId() == self.spec.specId()
        return bool(is_spec and iceberg.schema().schemaId() == self.schema_id)


def layout(jvm: Jvm, iceberg: Any) -> Layout:
    """What the rows of an Iceberg table's files have now."""
    schema, spec = iceberg.schema(), iceberg.spec()
    columns, values = jvm.struct_of(schema), jvm.struct_of(spec.partitionType().asSchema())
    prefix = "_partition_"
    while any(name.lower().startswith(prefix) for name in columns.names):
        prefix += "_"
    partition = [StructField(f"{prefix}{at}", f.dataType) for at, f in enumerate(values)]
    return Layout(schema.schemaId(), spec, columns, StructType(partition))


def append_frames(frames: DataFrame, of: Layout, commit: Commit, table: str, branch: str) -> int:
    """Write frames of rows to a branch of a table, where no reader sees them.

    Args:
        frames: One column of Arrow IPC streams, each with rows of the table.
        of: What the rows have.
        commit: What publishing the branch will mean.

    Returns:
        How many rows there were.

    Raises:
        FilesNotWritten: A worker has no pyarrow, died, or failed. What was observed of the
            frames counts for nothing, since Spark may have observed a part of them.
        ColumnsChanged: The table has other columns now, or another partition.
        CommitRefused: Others kept changing the table.
    """
    write = partial(written, frames, of)
    return _appended(frames.sparkSession, write, of, commit, table, branch)


def append_frame(
    spark: SparkSession, frame: bytes, of: Layout, commit: Commit, table: str, branch: str
) -> int:
    """Write the rows of one frame to a branch of a table, in this process: no task takes part.

    The other arguments, the result and the errors are those of :func:`append_frames`.
    """
    write = partial(written_in_driver, spark, frame, of)
    return _appended(spark, write, of, commit, table, branch)


def _appended(
    spark: SparkSession,
    write: Callable[[Any], list[Any]],
    of: Layout,
    commit: Commit,
    table: str,
    branch: str,
) -> int:
    iceberg = Jvm(spark).iceberg_table(table)
    if not of.is_of(iceberg):
        raise ColumnsChanged(f"{table} got other columns meanwhile")
    try:
        files = write(iceberg)
    except (*JAVA_ERRORS, pa.ArrowException) as error:
        raise FilesNotWritten(f"{table}: {reason_text(error)}") from error
    append_files(iceberg, files, commit, branch)
    return sum(int(file.recordCount()) for file in files)


def append_rows(rows: DataFrame, commit: Commit, table: str, branch: str) -> None:
    """Write rows, the table's columns in order, to a branch, by Iceberg's own writer.

    ``commit`` is what publishing the branch will mean.

    Raises:
        ColumnsChanged: The table got other columns since the rows were planned.
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
            raise ColumnsChanged(f"{table} got other columns meanwhile") from error
        raise


def written(frames: DataFrame, of: Layout, iceberg: Any) -> list[Any]:
    """Rows in data files of a table: Iceberg's ``DataFile`` of each, which no commit has yet."""
    spark = frames.sparkSession
    jvm = Jvm(spark)
    form = _format(iceberg, jvm.schema_json(iceberg.schema()), tuple(of.partition.names))
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(parquet)
    values = [f"{field.name} {field.dataType.simpleString()}" for field in of.partition]
    for key, setting in parquet.SPARK_SETTINGS.items():
        spark.conf.set(key, setting)
    writer = _writer(spark, jvm.serializable(iceberg))
    made = frames.mapInArrow(parquet.parquet_parts(form), ", ".join([parquet.PARTS, *values]))
    return jvm.mapped(made, writer, "org.apache.iceberg.DataFile")


def written_in_driver(spark: SparkSession, frame: bytes, of: Layout, iceberg: Any) -> list[Any]:
    """Rows of one frame in data files of a table, as :func:`written`, without a task."""
    jvm = Jvm(spark)
    form = _format(iceberg, jvm.schema_json(iceberg.schema()), tuple(of.partition.names))
    frames = pa.record_batch([pa.array([frame], pa.binary())], ["frame"])
    parts = [_ipc_stream(part) for part in parquet.parquet_parts(form)([frames])]
    return list(_writer(spark, iceberg).call(jvm.rows_of_arrow(parts).iterator()))


def _ipc_stream(batch: Any) -> bytes:
    made = pa.BufferOutputStream()
    with pa.ipc.new_stream(made, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(made.getvalue())


def _writer(spark: SparkSession, iceberg: Any) -> Any:
    return java_object(spark, [_WRITER], iceberg, secrets.token_hex(8))


def _format(iceberg: Any, schema: str, partition: tuple[str, ...]) -> parquet.Format:
    """How a table's properties say that its Parquet files are written."""
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
