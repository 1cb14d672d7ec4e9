"""Run one SQL statement on the sandbox's lake and write its rows."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, TextIO

from sandbox.install import spark_conf
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError, spark_reason
from spark_ingest.lake.preflight import check_java, check_spark_home

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


class Format(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"


def open_lake(home: Home, name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A Spark session on this sandbox's lake, whatever lake the environment's Spark opens.

    ``name`` is what Spark calls the program; ``settings`` are Spark's, beyond those of the
    lake.

    Raises:
        ConfigurationError: No fitting Java, another ``SPARK_HOME``.
        ServiceUnavailable: Spark's parts are not there and cannot be fetched.
    """
    check_java()
    check_spark_home()
    spark_conf.bring_spark()
    spark_conf.render(home, home.spark_conf)
    os.environ["SPARK_CONF_DIR"] = str(home.spark_conf)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run_query(home: Home, statement: str, form: Format, to: TextIO) -> None:
    """Run the statement and write its rows, and nothing else, to the stream.

    A semicolon at its end is fine. The forms: aligned columns, CSV with a header, or a JSON
    array of one object per line.

    Raises:
        ConfigurationError: Spark refuses the statement, or it fails.
    """
    text = statement.strip().removesuffix(";").strip()
    if not text:
        raise ConfigurationError('no statement: sandbox sql "select 1"')
    spark = open_lake(home, "sandbox sql")
    from pyspark.errors import PySparkException

    from spark_ingest.lake.session import silence_statement_log

    silence_statement_log()
    try:
        write_rows(spark.sql(text), form, to)
    except PySparkException as error:
        raise ConfigurationError(spark_reason(str(error))) from error
    finally:
        spark.stop()


def write_rows(frame: DataFrame, form: Format, to: TextIO) -> None:
    """Write the rows, and nothing else, to the stream.

    Nothing is written where the frame has no columns; ``form`` is as in :func:`run_query`.
    """
    if not frame.columns:  # a statement without a result, such as INSERT
        return
    if form is Format.JSON:
        _write_json(frame, to)
    elif form is Format.CSV:
        writer = csv.writer(to, lineterminator="\n")
        writer.writerow(frame.columns)
        writer.writerows(_texts(frame))
    else:
        write_table(frame, to)


def _texts(frame: DataFrame) -> Iterator[list[str | None]]:
    """The rows as Spark writes them: times in UTC whatever this machine's zone."""
    names = [f"c{number}" for number in range(len(frame.columns))]
    renamed = frame.toDF(*names)
    types = dict(renamed.dtypes)
    shown = renamed.select(*(_as_text(name, types[name]) for name in names))
    return ([*row] for row in shown.toLocalIterator())


def _as_text(name: str, kind: str) -> Column:
    from pyspark.sql import functions as F

    column = F.col(name)
    return (F.hex(column) if kind == "binary" else column.cast("string")).alias(name)


def _write_json(frame: DataFrame, to: TextIO) -> None:
    from pyspark.sql import functions as F

    row = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    separator = "[\n"
    for (text,) in frame.select(row).toLocalIterator():
        to.write(f"{separator}{text}")
        separator = ",\n"
    to.write("[]\n" if separator == "[\n" else "\n]\n")


def write_table(frame: DataFrame, to: TextIO) -> None:
    """Write the rows as aligned columns, numbers to the right."""
    numeric = ("int", "bigint", "smallint", "tinyint", "float", "double", "decimal")
    right = [kind.startswith(numeric) for _, kind in frame.dtypes]
    rows = [["null" if cell is None else cell for cell in row] for row in _texts(frame)]
    widths = [max(map(len, column)) for column in zip(frame.columns, *rows, strict=True)]
    for row in (frame.columns, ["-" * width for width in widths], *rows):
        cells = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        to.write("  ".join(cells).rstrip() + "\n")
