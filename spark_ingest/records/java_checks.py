"""Checks of payloads in Java: what is wrong with each, before Spark decodes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, SparkSession

from spark_ingest.lake.jvm import Jvm, java_object

SOURCES = Path(__file__).parent


def checked(names: Sequence[str], column: str, *arguments: str | int) -> Column:
    """What a check says of a column: a reason, or null where nothing is wrong.

    ``names`` are of its class, the last, and of those that it uses; ``arguments`` are of the
    class's constructor.
    """
    spark = SparkSession.active()
    session = Jvm(spark)
    jvm = session.packages
    check = java_object(spark, [SOURCES / f"{name}.java" for name in names], *arguments)
    spark_sql = jvm.org.apache.spark.sql
    function = session.java_udf(check, spark_sql.types.DataTypes.StringType)
    of = jvm.java.util.ArrayList()
    of.add(spark_sql.functions.col(column))
    return Column(function.withName(names[-1]).apply(jvm.PythonUtils.toSeq(of)))
