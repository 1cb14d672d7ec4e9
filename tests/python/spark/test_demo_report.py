"""The demo's report counts positions, so that a doubled record cannot hide a missing one.

Fails when the demo's report hides a missing record behind a doubled one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from sandbox.streams import STREAMS
from sandbox.tour.row_counts import Ends, RowCounts, row_counts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "demo_report"
SALES = "pagila.sales"
LINES = "smoothies.purchases"


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[str]:
    """Bronze and quarantine with the columns that the report reads, in a schema of their own."""
    columns = (
        "_kafka_topic string, _kafka_topic_id string, _kafka_partition int, _kafka_offset bigint"
    )
    names = ("pagila__sales", "smoothies__purchases", "quarantine")
    spark.sql(f"create namespace if not exists {SCHEMA}")
    for table in names:
        spark.sql(f"create or replace table {SCHEMA}.{table} ({columns})")
    yield SCHEMA
    for table in names:
        spark.sql(f"drop table {SCHEMA}.{table} purge")


def land(spark: SparkSession, table: str, *positions: tuple[int, int], stream: str = SALES) -> None:
    topic = STREAMS[stream].topic
    rows = ", ".join(f"('{topic}', 'id', {part}, {offset})" for part, offset in positions)
    spark.sql(f"insert into {SCHEMA}.{table} values {rows}")


def counts(spark: SparkSession, ends: Ends) -> list[RowCounts]:
    return list(row_counts(spark, ends, SCHEMA).values())


def test_records_in_either_table_are_all_there(spark: SparkSession, tables: str) -> None:
    land(spark, "pagila__sales", (0, 0), (0, 1), (1, 0))
    land(spark, "quarantine", (1, 1))
    land(spark, "quarantine", (0, 0), stream=LINES)

    assert counts(spark, {SALES: {0: 2, 1: 2}}) == [RowCounts(4, 3, 1, 0, 0)]


def test_a_missing_and_a_doubled_record_do_not_cancel_out(spark: SparkSession, tables: str) -> None:
    land(spark, "pagila__sales", (0, 0), (0, 0), (1, 0))

    assert counts(spark, {SALES: {0: 2, 1: 1}}) == [RowCounts(3, 3, 0, 1, 1)]


def test_records_that_came_after_the_events_are_not_counted(
    spark: SparkSession, tables: str
) -> None:
    land(spark, "pagila__sales", (0, 0), (0, 1), (0, 2))

    assert counts(spark, {SALES: {0: 2}}) == [RowCounts(2, 2, 0, 0, 0)]


def test_each_stream_has_its_own_account_also_where_nothing_came(
    spark: SparkSession, tables: str
) -> None:
    land(spark, "pagila__sales", (0, 0))
    land(spark, "quarantine", (0, 0), (0, 1), stream=LINES)
    ends = {LINES: {0: 2}, SALES: {0: 1, 1: 0}}

    assert row_counts(spark, ends, SCHEMA) == {
        LINES: RowCounts(2, 0, 2, 0, 0),
        SALES: RowCounts(1, 1, 0, 0, 0),
    }
    assert counts(spark, {LINES: {0: 0}}) == [RowCounts(0, 0, 0, 0, 0)]
