"""Checks and conversions of payloads in Java, before Spark decodes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, StringType

from spark_ingest.lake.jvm import Jvm, java_object

SOURCES = Path(__file__).parent


def checked(names: Sequence[str], column: str, *arguments: str | int) -> Column:
    """The result of a check of a column: a reason, or null for valid bytes.

    The arguments are those of :func:`applied`.
    """
    return applied(names, column, StringType(), *arguments)


def applied(names: Sequence[str], column: str, returns: DataType, *arguments: str | int) -> Column:
    """The result of a Java function of a column.

    Args:
        names: The class of the function, last, and the classes that it uses.
        column: The name of the column.
        returns: The type of the result.
        arguments: Those of the constructor.
    """
    spark = SparkSession.active()
    session = Jvm(spark)
    jvm = session.packages
    check = java_object(spark, [SOURCES / f"{name}.java" for name in names], *arguments)
    spark_sql = jvm.org.apache.spark.sql
    function = session.java_udf(check, spark_sql.types.DataType.fromJson(returns.json()))
    of = jvm.java.util.ArrayList()
    of.add(spark_sql.functions.col(column))
    return Column(function.withName(names[-1]).apply(jvm.PythonUtils.toSeq(of)))
