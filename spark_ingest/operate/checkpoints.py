"""Checkpoints of ``verify``: a successful verification stores one, the next starts there.

A checkpoint is valid while the data up to it cannot have changed: the snapshots since are ingest
commits and compactions, and the row count has grown by exactly the rows of these commits.
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
class CurrentSnapshot:
    """The current snapshot of a bronze table.

    Attributes:
        snapshot_id: Its id.
        commit_id: The newest ingest commit; None if no snapshot has one.
        records: Number of rows.
        has_deletes: Whether there are delete files, which ``records`` does not account for.
    """

    snapshot_id: int
    commit_id: int | None
    records: int
    has_deletes: bool


@dataclass(frozen=True)
class PartitionCheckpoint:
    """The verified offset ranges ``(first, end)`` of one partition, and their row counts."""

    ranges: tuple[Span, ...]
    bronze: int
    quarantined: int
    empty: int
    given_up: int


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of one table and topic.

    Attributes:
        topic_id: Kafka's UUID of the topic.
        commit_id: The newest verified commit.
        snapshot_id: The current snapshot of the table at that time.
        records: Number of rows of the table at that time, of all topics.
        partitions: The verified ranges, by partition.
    """

    topic_id: str
    commit_id: int
    snapshot_id: int
    records: int
    partitions: Mapping[int, PartitionCheckpoint]
    at: datetime


def current_snapshot(jvm: Jvm, table: str) -> CurrentSnapshot | None:
    """The current snapshot of a table; None if it has none."""
    iceberg = jvm.iceberg_table(table)
    current = iceberg.currentSnapshot()
    if current is None:
        return None
    newest, own = current, None
    while newest is not None and own is None:
        own = newest.summary().get(COMMIT_ID)
        newest = _parent(iceberg, newest)
    summary = current.summary()
    return CurrentSnapshot(
        current.snapshotId(),
        None if own is None else int(own),
        int(summary.get("total-records") or 0),
        (summary.get("total-delete-files") or "0") != "0",
    )


def is_untouched(jvm: Jvm, table: str, since: Checkpoint, now: CurrentSnapshot, grown: int) -> bool:
    """Whether the data up to a checkpoint cannot have changed.

    ``grown`` is the number of rows of the ingest commits since. If snapshots in between have
    expired, the others and the row count are compared: equally many deleted and duplicate rows
    would not be found.
    """
    if now.has_deletes or now.records - since.records != grown:
        return False
    iceberg = jvm.iceberg_table(table)
    here = iceberg.snapshot(now.snapshot_id)
    while here is not None and here.snapshotId() != since.snapshot_id:
        if not _is_own_or_rewritten(here, since.commit_id):
            return False
        if here.parentId() is None:
            # The first snapshot of the table: it was rolled back to before the checkpoint.
            return False
        here = _parent(iceberg, here)
    return True


def newest(spark: SparkSession, table_uuid: str) -> dict[str, Checkpoint]:
    """The newest checkpoint of each topic of a table, by topic id."""
    if not bronze.exists(spark, TABLE):
        return {}
    rows = (
        spark.table(f"{CATALOG}.{TABLE}")
        .where(F.col("table_uuid") == table_uuid)
        .groupBy("kafka_topic_id")
        .agg(F.max_by(F.struct(*_COLUMNS.names), "proven_at"))
        .collect()
    )
    return {row[0]: _checkpoint(row[1]) for row in rows}


def write(
    spark: SparkSession, table: str, table_uuid: str, checkpoints: Iterable[Checkpoint]
) -> None:
    """Store checkpoints."""
    bronze.create_table(
        spark,
        TABLE,
        _COLUMNS,
        "table_name",
        description="One row per verified table and topic: the offsets verified so far.",
    )
    rows: list[tuple[Any, ...]] = [
        (
            table,
            table_uuid,
            checkpoint.topic_id,
            checkpoint.commit_id,
            checkpoint.snapshot_id,
            checkpoint.records,
            [
                (p, list(of.ranges), of.bronze, of.quarantined, of.empty, of.given_up)
                for p, of in sorted(checkpoint.partitions.items())
            ],
            checkpoint.at,
        )
        for checkpoint in checkpoints
    ]
    literal_rows(spark, rows, _COLUMNS).writeTo(f"{CATALOG}.{TABLE}").append()


def _checkpoint(row: Row) -> Checkpoint:
    partitions = {
        p["partition"]: PartitionCheckpoint(
            tuple((r["first"], r["end"]) for r in p["ranges"]),
            p["bronze_count"],
            p["quarantined_count"],
            p["empty_count"],
            p["given_up_count"],
        )
        for p in row["partitions"]
    }
    return Checkpoint(
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
