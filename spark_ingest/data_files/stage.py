"""Rows staged on a branch of a bronze table.

Many go as Arrow from Spark to its Python workers, where Arrow C++ makes Parquet of them, and the
JVM's tasks put that where the table's location provider and FileIO say: Iceberg's own writer
takes rows one by one. Files of tasks that failed, or that ran twice, are in no answer, and so in
no commit. A few are written by Iceberg's own, which is there sooner.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_ingest.data_files import parquet
from spark_ingest.errors import ColumnsChanged, CommitRefused, FilesNotWritten
from spark_ingest.lake.committed import Commit
from spark_ingest.lake.jvm import CATALOG, JAVA_ERRORS, Jvm, java_object, java_reason
from spark_ingest.lake.table_change import is_conflict

# What Spark calls a plan whose table has changed, by a stream or a replay, since it was made.
_OTHER_COLUMNS = ("INCOMPATIBLE_TABLE_CHANGE_AFTER_ANALYSIS", "INCOMPATIBLE_DATA_FOR_TABLE")
_WRITER = Path(__file__).with_name("DataFileWriter.java")
# Codecs that Arrow calls otherwise.
_CODECS = {"uncompressed": "none"}
# Iceberg's functions in Spark that are named otherwise than its transforms.
_FUNCTIONS = {"year": "years", "month": "months", "day": "days", "hour": "hours"}


def stage(
    rows: DataFrame, commit: Commit, table: str, branch: str, *, by_arrow: bool = False
) -> int | None:
    """Write rows to a branch of a table, where no reader sees them.

    Args:
        rows: The table's columns, in order.
        commit: What publishing the branch will mean.
        by_arrow: Whether Arrow writes them: many sooner, a few later than Iceberg's own writer.

    Returns:
        Rows in the files of Arrow; None where Iceberg's own writer wrote them.

    Raises:
        FilesNotWritten: Arrow could not write them; what was observed of the rows counts for
            nothing, since Spark may have observed a part of them.
        ColumnsChanged: The table got other columns since the rows were planned.
        CommitRefused: Others kept changing the table.
    """
    try:
        if by_arrow:
            return _append_files(rows, table, branch, commit)
        _append_rows(rows, table, branch, commit)
    except JAVA_ERRORS as error:
        if is_conflict(error):
            raise CommitRefused(f"{table} moved meanwhile: {java_reason(error)}") from error
        raise
    return None


def _append_rows(rows: DataFrame, table: str, branch: str, commit: Commit) -> None:
    """Append a few rows by Iceberg's own writer: no Python worker is waited for."""
    writer = rows.writeTo(f"{CATALOG}.{table}.branch_{branch}")
    for key, value in commit.summary().items():
        writer = writer.option(f"snapshot-property.{key}", value)
    try:
        writer.append()
    except AnalysisException as error:
        if str(error.getCondition()).startswith(_OTHER_COLUMNS):
            raise ColumnsChanged(f"{table} got other columns meanwhile") from error
        raise


def _append_files(rows: DataFrame, table: str, branch: str, commit: Commit) -> int:
    """Append rows in files that Arrow C++ writes; how many."""
    jvm = Jvm(rows.sparkSession)
    iceberg = jvm.iceberg_table(table)
    try:
        files = written(jvm, rows, iceberg)
    except JAVA_ERRORS as error:
        # A worker that has no pyarrow, or dies, or rows that no Arrow batch holds.
        raise FilesNotWritten(f"{table}: {java_reason(error)}") from error
    append = iceberg.newAppend().toBranch(branch)
    for file in files:
        append = append.appendFile(file)
    for key, value in commit.summary().items():
        append = append.set(key, value)
    append.commit()
    return sum(int(file.recordCount()) for file in files)


def written(jvm: Jvm, rows: DataFrame, iceberg: Any) -> list[Any]:
    """Rows in data files of a table: Iceberg's ``DataFile`` of each, which no commit has yet.

    Raises:
        ColumnsChanged: The table has other columns than the rows.
    """
    schema = iceberg.schema()
    if jvm.types_of(schema) != jvm.types_in(rows):
        raise ColumnsChanged(f"{iceberg.name()} got other columns meanwhile")
    spec = iceberg.spec()
    values = [_value(field, schema) for field in spec.fields()]
    names = [f"_partition_{at}" for at in range(len(values))]
    kinds = jvm.field_types(spec.partitionType().fields())
    form = _format(iceberg, jvm.schema_json(schema), tuple(names))
    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(parquet)
    columns = [F.expr(f"{value} as {name}") for value, name in zip(values, names, strict=True)]
    parts = [parquet.PARTS, *(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))]
    for key, setting in parquet.SPARK_SETTINGS.items():
        rows.sparkSession.conf.set(key, setting)
    writer = java_object(
        rows.sparkSession, _WRITER, jvm.serializable(iceberg), secrets.token_hex(8)
    )
    made = rows.select("*", *columns).mapInArrow(parquet.parquet_parts(form), ", ".join(parts))
    return jvm.mapped(made, writer, "org.apache.iceberg.DataFile")


def _value(field: Any, schema: Any) -> str:
    """A partition field's value, as SQL of Iceberg's own functions."""
    path = str(schema.findColumnName(field.sourceId()))
    column = ".".join(f"`{name}`" for name in path.split("."))
    transform, _, argument = str(field.transform().toString()).rstrip("]").partition("[")
    if transform in ("identity", "void"):
        return column if transform == "identity" else "null"
    name = _FUNCTIONS.get(transform, transform)
    given = f"{argument}, {column}" if argument else column
    return f"{CATALOG}.system.{name}({given})"


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
