"""The lake that a rendered configuration names, and rows that go there from a plan.

Fails when Spark opens another lake than its configuration names, or a literal row changes a value.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_ingest.lake.jvm import literal_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sandbox.settings import Home

PLACE = StructType([StructField("partition", IntegerType()), StructField("end_offset", LongType())])
COLUMNS = StructType(
    [
        StructField("name", StringType()),
        StructField("number", LongType()),
        StructField("is_good", BooleanType()),
        StructField("places", ArrayType(PLACE)),
        StructField("at", TimestampType()),
    ]
)
TOKYO = timezone(timedelta(hours=9))
ROWS = [
    (
        """It's "so", ${a} \\ :rows\n\u20ac \U0001f600""",
        2**63 - 1,
        True,
        [(0, 2**40), (1, None)],
        datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
    ),
    ("", -(2**63), False, [], datetime(1969, 12, 31, 23, 59, 59, 1, TOKYO)),
    (None, None, None, None, None),
]


def test_a_table_of_the_lake_lies_in_the_home_though_its_path_has_a_blank(
    spark: SparkSession, home: Home
) -> None:
    spark.sql("create namespace if not exists conf_check")
    spark.sql("create table conf_check.numbers (n int)")

    spark.sql("insert into conf_check.numbers values (1), (2)")

    assert spark.table("conf_check.numbers").count() == 2
    assert " " in str(home.path)
    assert list((home.lake / "warehouse/conf_check/numbers/data").glob("*.parquet"))
    spark.sql("drop table conf_check.numbers purge")


def test_literal_rows_are_what_python_would_have_sent(spark: SparkSession) -> None:
    made = literal_rows(spark, ROWS, COLUMNS)

    assert made.dtypes == spark.createDataFrame([], COLUMNS).dtypes
    assert made.collect() == spark.createDataFrame(ROWS, COLUMNS).collect()
    assert made.rdd.getNumPartitions() == 1
    assert literal_rows(spark, [], COLUMNS).collect() == []
