"""The proof: what was committed, and that every record of it is in exactly one table.

``bronze.ingest_commits`` has a row for each commit of each stream, for people and for dbt.
It follows the tables: the snapshots' summaries are the truth, and a row that a crash kept
from being written is added at the next start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
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

from spark_ingest import bronze, quarantine
from spark_ingest.commit import BatchResult
from spark_ingest.errors import MillraceError
from spark_ingest.kafka import Broker, Topic
from spark_ingest.lease import Commit, own_snapshots
from spark_ingest.session import CATALOG, Jvm
from spark_ingest.sources import Stream

TABLE = f"{bronze.SCHEMA}.ingest_commits"
_OFFSETS = ArrayType(
    StructType(
        [
            StructField("partition", IntegerType()),
            StructField("first_offset", LongType()),
            StructField("end_offset", LongType()),
        ]
    )
)
COLUMNS = StructType(
    [
        StructField("table_name", StringType()),
        StructField("commit_id", LongType()),
        StructField("kafka_topic", StringType()),
        StructField("kafka_topic_id", StringType()),
        StructField("offsets", _OFFSETS),
        StructField("row_count", LongType()),
        StructField("quarantined_count", LongType()),
        StructField("value_bytes", LongType()),
        StructField("started_at", TimestampType()),
        StructField("committed_at", TimestampType()),
    ]
)
_GAPS_SHOWN = 20


@dataclass(frozen=True)
class Committed:
    """All that was committed of a topic.

    Attributes:
        ranges: By partition, the first offset ever committed and the one behind the last.
        last: The newest commit id; 0 when there is none.
    """

    ranges: Mapping[int, tuple[int, int]]
    last: int


@dataclass(frozen=True)
class PartitionProof:
    """What the tables and the broker say of one partition of one stream.

    Attributes:
        stream: The stream's name.
        partition: The partition.
        first: First offset that was ever committed.
        end: Offset behind the last committed one.
        bronze: Rows in the bronze table with such an offset.
        quarantined: Rows in quarantine with such an offset.
        doubled: Offsets that are in the tables more than once.
        empty: Offsets that hold no record on the broker (transaction markers and the like).
        missing: Ranges ``(first, end)`` of offsets that no table holds and the broker has, or
            cannot be asked for any more.
        uncommitted: Rows of bronze at offsets that no commit covers.
        lag: Records on the broker behind the last committed one.
    """

    stream: str
    partition: int
    first: int
    end: int
    bronze: int
    quarantined: int
    doubled: int
    empty: int
    missing: tuple[tuple[int, int], ...]
    uncommitted: int
    lag: int

    @property
    def holds(self) -> bool:
        """Whether every record is in exactly one table exactly once."""
        return not (self.missing or self.doubled or self.uncommitted)


def create(spark: SparkSession) -> bool:
    """Make the commit log where it is missing; whether it was made."""
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(committed_at)",
        description="One row per commit of each stream: what it took and when.",
    )


def log_commit(spark: SparkSession, stream: Stream, result: BatchResult) -> None:
    """Write down a commit that was just published."""
    row = _row(
        stream,
        result.commit,
        rows=result.rows,
        quarantined=result.quarantined,
        value_bytes=result.value_bytes,
        started_at=result.started_at,
        committed_at=datetime.now(UTC),
    )
    _append(spark, [row])


def catch_up(spark: SparkSession, stream: Stream) -> None:
    """Write down the commits that a crash kept out of the log.

    Their bytes and their start are not known any more and stay null.
    """
    logged = (
        spark.table(f"{CATALOG}.{TABLE}")
        .where(F.col("table_name") == stream.table)
        .agg(F.max("commit_id"))
        .first()
    )
    last = logged[0] if logged is not None and logged[0] is not None else 0
    rows = []
    for snapshot in own_snapshots(Jvm(spark), stream.table, after=last):
        set_aside = _quarantined(spark, stream, snapshot.commit)
        rows.append(
            _row(
                stream,
                snapshot.commit,
                rows=snapshot.rows,
                quarantined=set_aside,
                value_bytes=None,
                started_at=None,
                committed_at=snapshot.committed_at,
            )
        )
    if rows:
        _append(spark, rows)


def logged_ends(spark: SparkSession, stream: Stream) -> list[tuple[str, int, int, int]]:
    """By topic id and partition: the highest end offset in the log, and its commit id.

    Returns:
        Tuples (topic id, partition, end offset, commit id).
    """
    if not bronze.exists(spark, TABLE):
        return []
    rows = (
        spark.table(f"{CATALOG}.{TABLE}")
        .where(F.col("table_name") == stream.table)
        .select("kafka_topic_id", "commit_id", F.explode("offsets").alias("o"))
        .groupBy("kafka_topic_id", "o.partition")
        .agg(F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def committed_ranges(spark: SparkSession, stream: Stream, topic: Topic) -> Committed:
    """All that was committed of a topic: the log's commits, and newer ones by snapshot."""
    each = F.explode("offsets").alias("o")
    logged = (
        spark.table(f"{CATALOG}.{TABLE}")
        .where(
            (F.col("table_name") == stream.table)
            & (F.col("kafka_topic_id") == topic.id)
        )
        .select("commit_id", each)
        .groupBy("o.partition")
        .agg(F.min("o.first_offset"), F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    ranges = {row[0]: (row[1], row[2]) for row in logged}
    last = max((row[3] for row in logged), default=0)
    for snapshot in own_snapshots(Jvm(spark), stream.table, after=last):
        if snapshot.commit.topic_id != topic.id:
            continue
        last = max(last, snapshot.commit.id)
        for partition, end in snapshot.commit.ends.items():
            first = snapshot.commit.starts.get(partition, 0)
            old_first, old_end = ranges.get(partition, (first, end))
            ranges[partition] = (min(first, old_first), max(end, old_end))
    return Committed(ranges, last)


def prove(
    spark: SparkSession, broker: Broker, stream: Stream, topic: Topic
) -> list[PartitionProof]:
    """Hold the tables of one stream against its commits and the broker.

    Args:
        spark: A session on the lake.
        broker: The cluster that the stream comes from.
        stream: A stream whose table exists.
        topic: Its topic.

    Returns:
        A proof for each partition that was ever committed; empty for a stream that never ran.

    Raises:
        MillraceError: The table was filled from another topic of the same name, so that the
            broker cannot be asked about its records.
    """
    committed = committed_ranges(spark, stream, topic)
    if not committed.ranges:
        others = own_snapshots(Jvm(spark), stream.table)
        if others:
            raise MillraceError(
                f"{stream.table} was filled from a topic {topic.name} with the id "
                f"{others[0].commit.topic_id}, and the one there now is {topic.id}: nothing can "
                "be proved; is kafka.bootstrap.servers in profiles/ingest.yml the right cluster?"
            )
    held = _held(spark, stream, topic, committed.last).cache()
    try:
        counts = _counts(held, committed.ranges)
        gaps = _gaps(held, committed.ranges, counts)
    finally:
        held.unpersist()
    oldest, newest = broker.first_offsets(topic), broker.end_offsets(topic)
    proofs = []
    for partition in sorted(committed.ranges.keys() | counts.keys()):
        first, end = committed.ranges.get(partition, (0, 0))
        count, absent = counts.get(partition, {}), gaps.get(partition, [])
        gone = [gap for gap in absent if gap[0] < oldest.get(partition, 0)]
        asked = [gap for gap in absent if gap not in gone]
        missing = sorted(gone + broker.records_in(topic.name, partition, asked))
        empty = sum(
            gap_end - gap_first for gap_first, gap_end in set(absent) - set(missing)
        )
        proofs.append(
            PartitionProof(
                stream=stream.name,
                partition=partition,
                first=first,
                end=end,
                bronze=count.get("bronze", 0),
                quarantined=count.get("quarantined", 0),
                doubled=count.get("doubled", 0),
                empty=empty,
                missing=tuple(missing),
                uncommitted=count.get("outside", 0),
                lag=max(newest.get(partition, end) - end, 0),
            )
        )
    return proofs


def gaps_text(missing: Sequence[tuple[int, int]]) -> str:
    """Offset ranges for people: ``5-9, 12``."""
    shown = [
        str(first) if end == first + 1 else f"{first}-{end - 1}"
        for first, end in missing[:_GAPS_SHOWN]
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more ranges" if more else "")


def _held(spark: SparkSession, stream: Stream, topic: Topic, last: int) -> DataFrame:
    """Every (partition, offset) that a table holds of a topic, and whether it is set aside.

    Commits after ``last`` are left out: a stream may be running.
    """
    place = ["_kafka_partition", "_kafka_offset"]
    mine = F.col("_kafka_topic_id") == topic.id
    in_bronze = spark.table(f"{CATALOG}.{stream.table}").where(mine)
    aside = spark.table(f"{CATALOG}.{quarantine.TABLE}").where(
        mine & (F.col("_kafka_topic") == topic.name) & F.col("replayed_at").isNull()
    )
    in_bronze = in_bronze.where(F.coalesce("_commit_id", F.lit(0)) <= last)
    return in_bronze.select(*place, F.lit(False).alias("aside")).unionAll(
        aside.select(*place, F.lit(True).alias("aside"))
    )


def _counts(
    held: DataFrame, ranges: Mapping[int, tuple[int, int]]
) -> dict[int, dict[str, int]]:
    rows = (
        held.withColumn("inside", _inside(ranges))
        .groupBy("_kafka_partition")
        .agg(
            F.count_if(F.col("inside") & ~F.col("aside")).alias("bronze"),
            F.count_if(F.col("inside") & F.col("aside")).alias("quarantined"),
            # In quarantine they are a running or broken batch's, removed at the next start.
            F.count_if(~F.col("inside") & ~F.col("aside")).alias("outside"),
            F.countDistinct(F.when(F.col("inside"), F.col("_kafka_offset"))).alias(
                "distinct"
            ),
        )
        .collect()
    )
    counts: dict[int, dict[str, int]] = {}
    for row in rows:
        values: dict[str, Any] = row.asDict()
        values["doubled"] = (
            values["bronze"] + values["quarantined"] - values["distinct"]
        )
        counts[values.pop("_kafka_partition")] = values
    return counts


def _gaps(
    held: DataFrame,
    ranges: Mapping[int, tuple[int, int]],
    counts: Mapping[int, Mapping[str, int]],
) -> dict[int, list[tuple[int, int]]]:
    """By partition, the offset ranges inside the committed one that no table holds."""
    short = {
        partition: (first, end)
        for partition, (first, end) in ranges.items()
        if counts.get(partition, {}).get("distinct", 0) < end - first
    }
    gaps: dict[int, list[tuple[int, int]]] = {p: [] for p in short}
    if not short:
        return gaps
    # The committed range's two ends stand in for rows, so that gaps at the ends show too.
    ends = [
        (p, offset) for p, (first, end) in short.items() for offset in (first - 1, end)
    ]
    place = ["_kafka_partition", "_kafka_offset"]
    spark = held.sparkSession
    bounds = spark.createDataFrame(ends, "_kafka_partition int, _kafka_offset bigint")
    in_order = Window.partitionBy("_kafka_partition").orderBy("_kafka_offset")
    found = (
        held.where(_inside(short))
        .select(*place)
        .unionAll(bounds)
        .distinct()
        .withColumn("next", F.lead("_kafka_offset").over(in_order))
        .where(F.col("next") > F.col("_kafka_offset") + 1)
        .orderBy(*place)
    )
    for partition, offset, following in found.toLocalIterator():
        gaps[partition].append((offset + 1, following))
    return gaps


def _inside(ranges: Mapping[int, tuple[int, int]]) -> Any:
    inside = F.lit(False)
    for partition, (first, end) in ranges.items():
        offset = F.col("_kafka_offset")
        inside = inside | (
            (F.col("_kafka_partition") == partition)
            & (offset >= first)
            & (offset < end)
        )
    return inside


def _quarantined(spark: SparkSession, stream: Stream, commit: Commit) -> int:
    ranges = {p: (commit.starts.get(p, 0), end) for p, end in commit.ends.items()}
    rows = spark.table(f"{CATALOG}.{quarantine.TABLE}").where(
        (F.col("_kafka_topic") == stream.topic)
        & (F.col("_kafka_topic_id") == commit.topic_id)
    )
    return rows.where(_inside(ranges)).count()


def _row(
    stream: Stream,
    commit: Commit,
    *,
    rows: int,
    quarantined: int,
    value_bytes: int | None,
    started_at: datetime | None,
    committed_at: datetime,
) -> tuple[Any, ...]:
    offsets = [
        (p, commit.starts.get(p, 0), end) for p, end in sorted(commit.ends.items())
    ]
    return (
        stream.table,
        commit.id,
        stream.topic,
        commit.topic_id,
        offsets,
        rows,
        quarantined,
        value_bytes,
        started_at,
        committed_at,
    )


def _append(spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    table = f"{CATALOG}.{TABLE}"
    spark.createDataFrame(rows, COLUMNS).coalesce(1).writeTo(table).append()
