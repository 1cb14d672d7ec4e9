"""The demo's report counts positions, so that a doubled record cannot hide a missing one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sandbox import demo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC = "pagila.sales.avro"


@pytest.fixture
def tables(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Bronze and quarantine with the columns that the report reads, in a schema of their own."""
    columns = (
        "_kafka_topic string, _kafka_topic_id string,"
        " _kafka_partition int, _kafka_offset bigint"
    )
    spark.sql("create namespace if not exists demo_report")
    for table in ("sales", "quarantine"):
        spark.sql(f"create or replace table demo_report.{table} ({columns})")
    monkeypatch.setattr(demo, "_TABLE", "demo_report.sales")
    monkeypatch.setattr(demo, "_QUARANTINE", "demo_report.quarantine")
    yield "demo_report"
    for table in ("sales", "quarantine"):
        spark.sql(f"drop table demo_report.{table} purge")


def land(
    spark: SparkSession, table: str, *positions: tuple[int, int], topic: str = TOPIC
) -> None:
    rows = ", ".join(
        f"('{topic}', 'id', {part}, {offset})" for part, offset in positions
    )
    spark.sql(f"insert into demo_report.{table} values {rows}")


def test_records_in_either_table_are_all_there(
    spark: SparkSession, tables: str
) -> None:
    land(spark, "sales", (0, 0), (0, 1), (1, 0))
    land(spark, "quarantine", (1, 1))
    land(spark, "quarantine", (0, 0), topic="another")

    assert demo._count(spark, {0: 2, 1: 2}) == {
        "produced": 4,
        "in bronze": 3,
        "in quarantine": 1,
        "missing": 0,
        "doubled": 0,
    }


def test_a_missing_and_a_doubled_record_do_not_cancel_out(
    spark: SparkSession, tables: str
) -> None:
    land(spark, "sales", (0, 0), (0, 0), (1, 0))

    counted = demo._count(spark, {0: 2, 1: 1})

    assert (counted["missing"], counted["doubled"]) == (1, 1)


def test_records_that_came_after_the_events_are_not_counted(
    spark: SparkSession, tables: str
) -> None:
    land(spark, "sales", (0, 0), (0, 1), (0, 2))

    assert demo._count(spark, {0: 2})["in bronze"] == 2
