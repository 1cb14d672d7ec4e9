"""Records of a captured table, made by Spark from numbers alone: fast, and the same each time.

A snapshot says each row once. Behind it come updates, each of another row, spread evenly over
all of the table, until every row had one: what is changed lies in every file of the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.increments.worker import rows_of_table

TABLE = "bronze.pagila__address"
PARTITIONS = 4
BEGUN_AT = datetime(2026, 3, 1, tzinfo=UTC)
SNAPSHOT_LSN = 1_000
FIRST_LSN = 1_000_000
# Prime to every number of rows, which are whole thousands.
STRIDE = 7919


@dataclass(frozen=True)
class Span:
    """Records that follow each other.

    Attributes:
        first: The first of what the database did, by number: its rows in the snapshot, then
            updates.
        end: The first that is not among them.
        offset: Of the first record in Kafka.
        times: How often each is sent.
    """

    first: int
    end: int
    offset: int
    times: int = 1


def snapshot_and_updates(spark: SparkSession, rows: int, span: Span, commit_id: int) -> DataFrame:
    """Rows of one commit, as the table has them.

    Args:
        spark: A session on the lake.
        rows: That the snapshot has.
        span: Which records.
        commit_id: The commit's number.
    """
    place = F.col("id")
    count = span.end - span.first
    number = place % count + span.first
    is_snapshot = number < rows
    row = F.when(is_snapshot, number).otherwise((number - rows) * STRIDE % rows)
    key = (row + 1).cast("int")
    at = _millis(number)
    after = F.struct(
        key.alias("address_id"),
        F.concat(number, F.lit(" "), F.sha1(row.cast("string"))).alias("address"),
        F.lit(None).cast("string").alias("address2"),
        F.concat(F.lit("District "), row % 89).alias("district"),
        (row % 599 + 1).cast("int").alias("city_id"),
        F.lpad((row % 99_999).cast("string"), 5, "0").alias("postal_code"),
        F.concat(F.lit("+1 "), row * 104_729 % 10_000_000_000).alias("phone"),
        F.lit("2026-02-01T00:00:00Z").alias("last_update"),
    )
    lsn = F.when(is_snapshot, SNAPSHOT_LSN).otherwise(number - rows + FIRST_LSN)
    return _rows(
        spark.range(0, count * span.times, 1, PARTITIONS),
        {
            "after": after,
            "op": F.when(is_snapshot, "r").otherwise("u"),
            "source": _source(lsn, at, is_snapshot),
            "_key": F.struct(key.alias("address_id")),
            "_kafka_partition": row % PARTITIONS,
            "_kafka_offset": place + span.offset,
            "_kafka_timestamp": F.timestamp_millis(at),
            "_commit_id": F.lit(commit_id),
        },
    )


def late_truncate(spark: SparkSession, rows: int, offset: int, commit_id: int) -> DataFrame:
    """A TRUNCATE that the database did behind its snapshot and before all updates."""
    at = _millis(F.lit(rows))
    return _rows(
        spark.range(1),
        {
            "op": F.lit("t"),
            "source": _source(F.lit(FIRST_LSN - 1), at, F.lit(False)),
            "_kafka_partition": F.lit(0),
            "_kafka_offset": F.lit(offset),
            "_kafka_timestamp": F.timestamp_millis(at),
            "_commit_id": F.lit(commit_id),
        },
    )


def _rows(made: DataFrame, columns: dict[str, Column]) -> DataFrame:
    known = {
        **columns,
        "_kafka_topic": F.lit("pagila.public.address"),
        "_kafka_topic_id": F.lit("bench-pagila.public.address"),
        "_schema_id": F.lit(1),
        "_is_tombstone": F.lit(False),
        "_ingested_at": columns["_kafka_timestamp"],
    }
    return rows_of_table(made, TABLE, known)


def _source(lsn: Column, at: Column, is_snapshot: Column) -> Column:
    return F.struct(
        at.alias("ts_ms"),
        F.when(is_snapshot, "true").otherwise("false").alias("snapshot"),
        lsn.cast("bigint").alias("lsn"),
    )


def _millis(number: Column) -> Column:
    return (number + int(BEGUN_AT.timestamp() * 1000)).cast("bigint")
