"""Up to where a table was proved: each proof that holds leaves a mark, the next goes on there.

A mark counts as long as nothing behind it can have changed: the table's snapshots since are
its own commits and rewritten files, and it has as many rows more as these brought.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_ingest.commits.committed import COMMIT_ID
from spark_ingest.commits.offsets import Span
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm, literal_rows

TABLE = f"{bronze.SCHEMA}.ingest_proofs"
_RANGE = StructType([StructField("first", LongType()), StructField("end", LongType())])
_PARTITION = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("ranges", ArrayType(_RANGE)),
        StructField("bronze_count", LongType()),
        StructField("quarantined_count", LongType()),
        StructField("empty_count", LongType()),
        StructField("given_up_count", LongType()),
    ]
)
_COLUMNS = StructType(
    [
        StructField("table_name", StringType()),
        StructField("table_uuid", StringType()),
        StructField("kafka_topic_id", StringType()),
        StructField("commit_id", LongType()),
        StructField("snapshot_id", LongType()),
        StructField("record_count", LongType()),
        StructField("partitions", ArrayType(_PARTITION)),
        StructField("proven_at", TimestampType()),
    ]
)


@dataclass(frozen=True)
class Head:
    """A bronze table at one moment.

    Attributes:
        snapshot_id: Its current snapshot.
        commit_id: The newest own commit; None where no snapshot shows one.
        records: Rows that it has.
        has_deletes: Whether rows are hidden by delete files, so that ``records`` says less.
    """

    snapshot_id: int
    commit_id: int | None
    records: int
    has_deletes: bool


@dataclass(frozen=True)
class PartitionMark:
    """What was proved of one partition: ranges ``(first, end)``, and what they hold."""

    ranges: tuple[Span, ...]
    bronze: int
    quarantined: int
    empty: int
    given_up: int


@dataclass(frozen=True)
class Mark:
    """Up to where a table was proved, of one topic.

    Attributes:
        topic_id: Kafka's UUID of the topic.
        commit_id: The newest commit that was proved.
        snapshot_id: The table's snapshot then.
        records: Rows that the table had then, of all topics.
        partitions: What was proved, by partition.
    """

    topic_id: str
    commit_id: int
    snapshot_id: int
    records: int
    partitions: Mapping[int, PartitionMark]
    at: datetime


def head(jvm: Jvm, table: str) -> Head | None:
    """A table as it is now; None for one that has no snapshot."""
    iceberg = jvm.iceberg_table(table)
    current = iceberg.currentSnapshot()
    if current is None:
        return None
    newest, own = current, None
    while newest is not None and own is None:
        own = newest.summary().get(COMMIT_ID)
        newest = _parent(iceberg, newest)
    summary = current.summary()
    return Head(
        current.snapshotId(),
        None if own is None else int(own),
        int(summary.get("total-records") or 0),
        (summary.get("total-delete-files") or "0") != "0",
    )


def is_untouched(jvm: Jvm, table: str, since: Mark, now: Head, grown: int) -> bool:
    """Whether nothing behind a mark can have changed.

    Where maintenance has removed snapshots in between, the others and the number of rows
    count: as many rows deleted as doubled would not show. ``grown`` is the rows that the table's
    own commits behind the mark brought.
    """
    if now.has_deletes or now.records - since.records != grown:
        return False
    iceberg = jvm.iceberg_table(table)
    here = iceberg.snapshot(now.snapshot_id)
    while here is not None and here.snapshotId() != since.snapshot_id:
        if not _is_own_or_rewritten(here, since.commit_id):
            return False
        if here.parentId() is None:
            # The table's beginning: it was rolled back to before the mark.
            return False
        here = _parent(iceberg, here)
    return True


def marks(spark: SparkSession, table_uuid: str) -> dict[str, Mark]:
    """The newest mark of each topic of a table, by topic id."""
    if not bronze.exists(spark, TABLE):
        return {}
    rows = (
        spark.table(f"{CATALOG}.{TABLE}")
        .where(F.col("table_uuid") == table_uuid)
        .groupBy("kafka_topic_id")
        .agg(F.max_by(F.struct(*_COLUMNS.names), "proven_at"))
        .collect()
    )
    return {row[0]: _mark(row[1]) for row in rows}


def write(spark: SparkSession, table: str, table_uuid: str, proved: Iterable[Mark]) -> None:
    """Keep marks of what was proved."""
    bronze.create_table(
        spark,
        TABLE,
        _COLUMNS,
        "table_name",
        description="One row per topic and proof of a table: up to where it was proved.",
    )
    rows: list[tuple[Any, ...]] = [
        (
            table,
            table_uuid,
            mark.topic_id,
            mark.commit_id,
            mark.snapshot_id,
            mark.records,
            [
                (p, list(of.ranges), of.bronze, of.quarantined, of.empty, of.given_up)
                for p, of in sorted(mark.partitions.items())
            ],
            mark.at,
        )
        for mark in proved
    ]
    literal_rows(spark, rows, _COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()


def _mark(row: Row) -> Mark:
    partitions = {
        p["partition"]: PartitionMark(
            tuple((r["first"], r["end"]) for r in p["ranges"]),
            p["bronze_count"],
            p["quarantined_count"],
            p["empty_count"],
            p["given_up_count"],
        )
        for p in row["partitions"]
    }
    return Mark(
        row["kafka_topic_id"],
        row["commit_id"],
        row["snapshot_id"],
        row["record_count"],
        partitions,
        row["proven_at"].astimezone(UTC),
    )


def _is_own_or_rewritten(snapshot: Any, after: int) -> bool:
    summary = snapshot.summary()
    own = summary.get(COMMIT_ID)
    if own is not None:
        return int(own) > after
    added, deleted = (int(summary.get(f"{verb}-records") or 0) for verb in ("added", "deleted"))
    return added == deleted and (snapshot.operation() == "replace" or not added)


def _parent(iceberg: Any, snapshot: Any) -> Any:
    parent = snapshot.parentId()
    return iceberg.snapshot(parent) if parent is not None else None
