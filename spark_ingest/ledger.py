"""The commit log: what each commit of each stream took, for people, for dbt and for the proof.

``bronze.ingest_commits`` has a row for each commit. It follows the tables: the snapshots'
summaries are the truth, and a row that a crash kept from being written is added at the next
start.
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
from spark_ingest.branch import publish_on
from spark_ingest.commit import BatchResult
from spark_ingest.kafka import Topic
from spark_ingest.lease import (
    Commit,
    CommitKind,
    OwnSnapshot,
    first_snapshot,
    own_snapshots,
)
from spark_ingest.session import CATALOG, Jvm
from spark_ingest.sources import Stream

TABLE = f"{bronze.SCHEMA}.ingest_commits"
_BRANCH_PREFIX = "log_"
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
        # Null is a stream's: rows of a log that is older than the column.
        StructField("kind", StringType()),
    ]
)
# Kinds that move the stream forward; the others take offsets elsewhere, or none.
_FORWARD = (CommitKind.STREAM, CommitKind.GAP, CommitKind.NEW_TOPIC)

Span = tuple[int, int]


@dataclass(frozen=True)
class Committed:
    """All that was committed of a topic.

    Attributes:
        ranges: By partition, the first offset that the stream ever committed and the one
            behind its last, gaps that were accepted included.
        last: The newest commit id of the table; 0 when there is none.
        backfilled: By partition, the ranges ``(first, end)`` that were committed beside it.
        given_up: By partition, the ranges within ``ranges`` whose records were given up.
    """

    ranges: Mapping[int, Span]
    last: int
    backfilled: Mapping[int, tuple[Span, ...]]
    given_up: Mapping[int, tuple[Span, ...]]

    def spans(self) -> dict[int, tuple[Span, ...]]:
        """By partition, all that was committed, in order and without overlaps."""
        parts = self.ranges.keys() | self.backfilled.keys()
        found: dict[int, tuple[Span, ...]] = {}
        for p in sorted(parts):
            own = [self.ranges[p]] if p in self.ranges else []
            found[p] = merged([*own, *self.backfilled.get(p, ())])
        return found


@dataclass(frozen=True)
class Taken:
    """What one commit took and what it found there.

    Attributes:
        commit_id: The commit.
        kind: Who made it and what for.
        offsets: Its ranges, by partition.
        empty: Offsets of it that held no record when Kafka delivered it.
    """

    commit_id: int
    kind: CommitKind
    offsets: Mapping[int, Span]
    empty: int


def create(spark: SparkSession) -> bool:
    """Make the commit log where it is missing; whether it was made.

    One that an earlier version made gets the columns that it lacks.
    """
    made = bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(committed_at)",
        description="One row per commit of each stream: what it took and when.",
    )
    if not made and bronze.missing_columns(spark, TABLE, COLUMNS):
        bronze.evolve(Jvm(spark), TABLE, COLUMNS)
    return made


def log_commit(spark: SparkSession, stream: Stream, result: BatchResult) -> None:
    """Write down a commit that was just published.

    Args:
        spark: A session on the lake.
        stream: Whose.
        result: What it did. A replay's counts are what it moved: ``rows`` more in bronze, and
            as many less, with a minus, in quarantine.
    """
    row = _row(
        stream,
        result.commit,
        rows=result.rows,
        quarantined=result.quarantined,
        value_bytes=result.value_bytes,
        started_at=result.started_at,
        committed_at=datetime.now(UTC),
    )
    if result.commit.kind is CommitKind.STREAM:
        _append(spark, [row])
    else:
        # The stream, which this commit made start anew, may be writing it down too.
        _append_missing(spark, stream, [row])


def log_commits(
    spark: SparkSession, commits: Sequence[tuple[Stream, BatchResult]]
) -> None:
    """Write down commits of streams that were just published, in one append."""
    rows = [
        _row(
            stream,
            result.commit,
            rows=result.rows,
            quarantined=result.quarantined,
            value_bytes=result.value_bytes,
            started_at=result.started_at,
            committed_at=result.committed_at,
        )
        for stream, result in commits
    ]
    _append(spark, rows)


def catch_up(spark: SparkSession, stream: Stream) -> None:
    """Write down the commits that a crash kept out of the log.

    Their bytes and their start are not known any more and stay null.
    """
    rows = _unlogged(spark, stream)
    if rows:
        _append_missing(spark, stream, rows)


def logged_ends(spark: SparkSession, stream: Stream) -> list[tuple[str, int, int, int]]:
    """By topic id and partition: where the log says that the stream stands.

    Returns:
        Tuples (topic id, partition, end offset, commit id).
    """
    if not bronze.exists(spark, TABLE):
        return []
    rows = (
        _logged(spark, stream)
        .where(F.col("kind").isin(*_FORWARD))
        .select("kafka_topic_id", "commit_id", F.explode("offsets").alias("o"))
        .groupBy("kafka_topic_id", "o.partition")
        .agg(F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def commit_ids(spark: SparkSession, stream: Stream, *kinds: CommitKind) -> list[int]:
    """The logged commits of some kinds."""
    if not bronze.exists(spark, TABLE):
        return []
    rows = _logged(spark, stream).where(F.col("kind").isin(*kinds))
    return [row[0] for row in rows.select("commit_id").collect()]


def committed(spark: SparkSession, stream: Stream) -> dict[str, Committed]:
    """All that was committed of each topic that a table was filled from, the newest first.

    The log's commits, and those that it lacks yet, from the snapshots. The topics are told
    by Kafka's UUID.
    """
    commits = _commits(spark, stream)
    each = commits.select(
        "kafka_topic_id", "kind", "commit_id", F.explode_outer("offsets").alias("o")
    )
    apart = F.col("kind").isin(str(CommitKind.GAP), str(CommitKind.BACKFILL))
    # One row for all that a stream took of a partition, and one for each other range.
    rows = (
        each.groupBy(
            "kafka_topic_id",
            "kind",
            "o.partition",
            F.when(apart, F.col("commit_id")).alias("of"),
        )
        .agg(F.min("o.first_offset"), F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    last = max((row[6] for row in rows), default=0)
    found: dict[str, Committed] = {}
    for topic_id, *_ in sorted(rows, key=lambda row: -int(row[6])):
        if topic_id in found:
            continue
        forward: dict[int, list[Span]] = {}
        backfilled: dict[int, list[Span]] = {}
        given_up: dict[int, list[Span]] = {}
        for of, kind, partition, _, first, end, _ in rows:
            if of != topic_id or partition is None:
                continue
            if kind in _FORWARD:
                forward.setdefault(partition, []).append((first, end))
            if kind == CommitKind.GAP:
                given_up.setdefault(partition, []).append((first, end))
            if kind == CommitKind.BACKFILL and end > first:
                backfilled.setdefault(partition, []).append((first, end))
        found[topic_id] = Committed(
            {p: (min(s)[0], max(e for _, e in s)) for p, s in forward.items()},
            last,
            {p: merged(s) for p, s in backfilled.items()},
            {p: merged(s) for p, s in given_up.items()},
        )
    return found


def committed_ranges(spark: SparkSession, stream: Stream, topic: Topic) -> Committed:
    """All that was committed of one topic."""
    return committed(spark, stream).get(topic.id, Committed({}, 0, {}, {}))


def taken(spark: SparkSession, stream: Stream, topic: Topic) -> list[Taken]:
    """What each commit of a topic took, and how many of its offsets held no record."""
    rows = _commits(spark, stream).where(F.col("kafka_topic_id") == topic.id)
    found = []
    columns = ("commit_id", "kind", "offsets", "row_count", "quarantined_count")
    for commit_id, kind, offsets, count, set_aside in rows.select(*columns).collect():
        ranges = {o["partition"]: (o["first_offset"], o["end_offset"]) for o in offsets}
        size = sum(end - first for first, end in ranges.values())
        found.append(
            Taken(commit_id, CommitKind(kind), ranges, size - count - set_aside)
        )
    return found


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Ranges ``(first, end)`` in order; those that touch or overlap are one."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)


def _logged(spark: SparkSession, stream: Stream) -> DataFrame:
    """The log's rows of one table, each with its kind."""
    log = spark.table(f"{CATALOG}.{TABLE}").where(F.col("table_name") == stream.table)
    kind = F.col("kind") if "kind" in log.columns else F.lit(None)
    return log.withColumn("kind", F.coalesce(kind, F.lit(str(CommitKind.STREAM))))


def _commits(spark: SparkSession, stream: Stream) -> DataFrame:
    """The log's rows of one table, and those that it lacks yet, from the snapshots."""
    lacking = spark.createDataFrame(_unlogged(spark, stream), COLUMNS)
    return _logged(spark, stream).unionByName(lacking)


def _unlogged(spark: SparkSession, stream: Stream) -> list[tuple[Any, ...]]:
    """Rows of the log for the own snapshots that it lacks.

    They need not be the newest: a commit beside the stream may be written down first.
    """
    ids = _logged(spark, stream).select("table_name", "commit_id")
    row = ids.agg(
        F.min("commit_id"), F.max("commit_id"), F.countDistinct("commit_id")
    ).first()
    first, newest, count = row if row is not None else (None, None, 0)
    known, beyond = newest or 0, set[int]()
    if first is not None and (first != 1 or newest != count):
        # There is a hole: all are logged up to the first one.
        following = F.lead("commit_id").over(
            Window.partitionBy("table_name").orderBy("commit_id")
        )
        holes = (
            ids.distinct()
            .withColumn("following", following)
            .where("following > commit_id + 1")
        )
        row = holes.agg(F.min("commit_id")).first()
        known = row[0] if first == 1 and row is not None and row[0] else 0
        beyond = {r[0] for r in ids.where(F.col("commit_id") > known).toLocalIterator()}
    return [
        _row_of_snapshot(spark, stream, snapshot)
        for snapshot in own_snapshots(Jvm(spark), stream.table, after=known)
        if snapshot.commit.id not in beyond
    ]


def _row_of_snapshot(
    spark: SparkSession, stream: Stream, snapshot: OwnSnapshot
) -> tuple[Any, ...]:
    commit = snapshot.commit
    if commit.kind is CommitKind.REPLAY:
        quarantined = -snapshot.rows
    elif commit.kind in (CommitKind.STREAM, CommitKind.BACKFILL):
        quarantined = _quarantined(spark, stream, commit)
    else:
        quarantined = 0
    return _row(
        stream,
        commit,
        rows=snapshot.rows,
        quarantined=quarantined,
        value_bytes=None,
        started_at=None,
        committed_at=snapshot.committed_at,
    )


def _quarantined(spark: SparkSession, stream: Stream, commit: Commit) -> int:
    inside = F.lit(False)
    for p, end in commit.ends.items():
        offset = F.col("_kafka_offset")
        inside = inside | (
            (F.col("_kafka_partition") == p)
            & (offset >= commit.starts.get(p, 0))
            & (offset < end)
        )
    rows = spark.table(f"{CATALOG}.{quarantine.TABLE}").where(
        (F.col("_kafka_topic") == stream.topic)
        & (F.col("_kafka_topic_id") == commit.topic_id)
    )
    return rows.where(inside).count()


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
    # A replay takes no offsets: its records have theirs since the commit that set them aside.
    offsets = [
        (p, commit.starts.get(p, 0), end)
        for p, end in sorted(commit.ends.items())
        if commit.kind is not CommitKind.REPLAY
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
        str(commit.kind),
    )


def _append_missing(
    spark: SparkSession, stream: Stream, rows: list[tuple[Any, ...]]
) -> None:
    """Append the rows whose commits the log lacks, whoever else is appending them."""
    wanted = [row[1] for row in rows]

    def write(branch: str) -> bool:
        have = _logged(spark, stream).where(F.col("commit_id").isin(wanted))
        known = {row[0] for row in have.select("commit_id").collect()}
        lacking = [row for row in rows if row[1] not in known]
        if lacking:
            data = spark.createDataFrame(lacking, COLUMNS).coalesce(1)
            data.writeTo(f"{CATALOG}.{TABLE}.branch_{branch}").append()
        return bool(lacking)

    jvm = Jvm(spark)
    first_snapshot(jvm, TABLE)
    publish_on(jvm, TABLE, _BRANCH_PREFIX, write, "others keep writing to it")


def _append(spark: SparkSession, rows: list[tuple[Any, ...]]) -> None:
    table = f"{CATALOG}.{TABLE}"
    spark.createDataFrame(rows, COLUMNS).coalesce(1).writeTo(table).append()
