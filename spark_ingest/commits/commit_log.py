"""The commit log: the offsets and counts of each commit of each stream.

``bronze.ingest_commits`` has a row per commit. It follows the tables: the snapshots' summaries
are authoritative, and a row that is missing after a crash is added at the next start. Each row
identifies its table by Iceberg's UUID; a row of kind ``table``, written before a table's first
commit, assigns the name to a UUID.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from pyspark.sql import DataFrame, SparkSession
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

from spark_ingest.commits import quarantine_table, table_identity
from spark_ingest.commits.branch import publish_on
from spark_ingest.commits.committed import (
    FORWARD,
    BatchResult,
    Commit,
    CommitKind,
    CommitOffsets,
    Committed,
    OwnSnapshot,
    by_topic,
    own_snapshots,
)
from spark_ingest.commits.offsets import total
from spark_ingest.commits.table_identity import (
    Identity,
    PreviousTable,
    logged_without_holes,
    uuid_of,
)
from spark_ingest.connect.broker import Topic
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm, literal_rows
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.sources import Stream

TABLE = f"{bronze.SCHEMA}.ingest_commits"
_BRANCH_PREFIX = "log_"
_LATER = timedelta(microseconds=1)
# Streams that start side by side wait for the scan of the first.
_summarizing = threading.Lock()
# After a crash all streams write to the log when they start: more at once would only conflict.
# Not one by one, because a stream whose table hangs would keep the others from starting.
_publishing = threading.Semaphore(2)
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
        StructField("kind", StringType()),
        StructField("table_uuid", StringType()),
    ]
)


def create(spark: SparkSession) -> bool:
    """Create the commit log if it is missing; whether it was created."""
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(committed_at)",
        description="One row per commit of each stream: offsets, counts and times.",
    )


def log_commit(spark: SparkSession, stream: Stream, result: BatchResult) -> None:
    """Log a commit that was just published concurrently with a stream.

    A replay moves rows from quarantine to bronze, so its quarantined count is negative.
    """
    # The stream, which restarts because of this commit, may log it too.
    log_commits(spark, lambda: [(stream, result)], again=True)


def log_commits(
    spark: SparkSession,
    published: Callable[[], Sequence[tuple[Stream, BatchResult]]],
    *,
    again: bool = False,
) -> None:
    """Log commits of streams that were just published, in one append.

    Args:
        published: Returns the streams and commits, without tables that were taken over, whose
            new writer logs their commits from the snapshots. It is called after the log's
            branch was created, and again after each conflict.
        again: Whether some of them may be in the log already: only the others are written.
    """
    jvm = Jvm(spark)

    def rows() -> list[tuple[Any, ...]]:
        commits = published()
        uuids = {name: uuid_of(jvm, name) for name in {s.table for s, _ in commits}}
        return [
            _row(
                stream,
                uuids[stream.table],
                result.commit,
                rows=result.rows,
                quarantined=result.quarantined,
                value_bytes=result.value_bytes,
                started_at=result.started_at,
                committed_at=result.committed_at,
            )
            for stream, result in commits
        ]

    _append(spark, rows, again=again)


def catch_up(
    spark: SparkSession, stream: Stream, check: Callable[[], None], known: Identity | None = None
) -> PreviousTable | None:
    """Bring the log up to date with a stream's table.

    Adds commits that are missing after a crash; their bytes and start time are unknown and stay
    null. Adds the row that names the table if it is missing.

    Args:
        check: Raises if the table was taken over: the new writer logs its commits.
        known: A recent result of :func:`identity_of`; None to query it here.

    Returns:
        The previous table of that name; None if there was none.

    Raises:
        LeaseLost: The table was taken over.
    """
    known = known or identity_of(spark, stream.table)
    if not known.is_newest:
        name_tables(spark, [stream])
        known = identity_of(spark, stream.table)
    if lacking := _unlogged(spark, stream, known):
        _append(spark, lambda: lacking, again=True, check=check)
    return previous_table(spark, stream) if known.has_others else None


def identity_of(spark: SparkSession, table: str) -> Identity:
    """The current table of a name, and its commits in the log.

    Streams that start side by side share one scan of the log.
    """
    jvm = Jvm(spark)
    uuid = uuid_of(jvm, table)
    log = jvm.iceberg_table(TABLE)
    snapshot = log.currentSnapshot()
    if snapshot is None:
        return table_identity.Summary(None, {}).of(uuid)
    with _summarizing:
        found = _summaries(spark, str(log.uuid()), snapshot.snapshotId())
    return found.get(table, table_identity.Summary(None, {})).of(uuid)


@lru_cache(maxsize=1)
def _summaries(
    spark: SparkSession, _log_uuid: str, snapshot_id: int
) -> dict[str, table_identity.Summary]:
    rows = spark.sql(f"select * from {CATALOG}.{TABLE} version as of {snapshot_id}")
    return table_identity.summaries(rows)


def previous_table(spark: SparkSession, stream: Stream) -> PreviousTable | None:
    """The previous table of a stream, or the one that was dropped; None if there was none."""
    if not bronze.exists(spark, TABLE):
        return None
    here = bronze.exists(spark, stream.table)
    uuid = uuid_of(Jvm(spark), stream.table) if here else ""
    return table_identity.previous_table(_named(spark, stream.table), uuid)


def name_tables(spark: SparkSession, streams: Sequence[Stream]) -> None:
    """Name the tables of some streams in the log, in one commit; the tables must exist."""
    jvm, now = Jvm(spark), datetime.now(UTC)
    tables = {stream.table: stream for stream in streams}

    def write(branch: str) -> bool:
        # Other writers may have named some of them concurrently.
        known = table_identity.newest_named(spark.table(f"{CATALOG}.{TABLE}"), tables)
        lacking: list[tuple[Any, ...]] = []
        for table, stream in tables.items():
            since, named = known.get(table, (None, None))
            uuid = uuid_of(jvm, table)
            if named == uuid:
                continue
            # The newest row counts, and the clock of the last writer may be ahead.
            at = now if since is None else max(now, since + _LATER)
            lacking.append(
                (table, 0, stream.topic, None, [], 0, 0, 0, None, at, table_identity.KIND, uuid)
            )  # fmt: skip
        return _write(spark, lacking, branch)

    if tables:
        _publish(spark, write)


def logged_ends(
    spark: SparkSession, stream: Stream, known: Identity
) -> list[tuple[str, int, int, int]]:
    """The stream's end offset in the log by topic and partition.

    ``known`` is from :func:`identity_of`. Returns tuples (topic id, partition, end offset,
    commit id).
    """
    rows = (
        logged(spark, stream.table, known)
        .where(F.col("kind").isin(*FORWARD))
        .select("kafka_topic_id", "commit_id", F.explode("offsets").alias("o"))
        .groupBy("kafka_topic_id", "o.partition")
        .agg(F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    return [(row[0], row[1], row[2], row[3]) for row in rows]


def commit_ids(
    spark: SparkSession, table: str, *kinds: CommitKind, known: Identity | None = None
) -> list[int]:
    """The commit ids of the current table of a name in the log, in any order.

    Empty ``kinds`` select all; ``known`` is a recent result of :func:`identity_of`, None to query
    it here.
    """
    if not bronze.exists(spark, TABLE):
        return []
    rows = logged(spark, table, known)
    if kinds:
        rows = rows.where(F.col("kind").isin(*kinds))
    return [row[0] for row in rows.select("commit_id").toLocalIterator()]


def committed(
    spark: SparkSession, stream: Stream, until: int | None = None
) -> dict[str, Committed]:
    """The committed offsets by Kafka's topic UUID, the newest topic first.

    From the log, and from the snapshots that it lacks. ``until`` is the last commit id to
    include; None for all.
    """
    commits = _commits(spark, stream)
    if until is not None:
        commits = commits.where(F.col("commit_id") <= until)
    each = commits.select(
        "kafka_topic_id", "kind", "commit_id", F.explode_outer("offsets").alias("o")
    )
    is_separate = F.col("kind").isin(str(CommitKind.GAP), str(CommitKind.BACKFILL))
    # One row per partition for the stream's commits, and one for each other range.
    rows = (
        each.groupBy(
            "kafka_topic_id",
            "kind",
            "o.partition",
            F.when(is_separate, F.col("commit_id")).alias("of"),
        )
        .agg(F.min("o.first_offset"), F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    return by_topic([tuple(row) for row in rows])


def committed_ranges(spark: SparkSession, stream: Stream, topic: Topic) -> Committed:
    """The committed offsets of one topic."""
    return committed(spark, stream).get(topic.id, Committed({}, 0, {}, {}))


def grown(
    spark: SparkSession, stream: Stream, after: int, until: int
) -> tuple[int, set[CommitKind]]:
    """The number of rows that commits above ``after``, up to ``until``, added, and their kinds."""
    between = F.col("commit_id").between(after + 1, until)
    each = _commits(spark, stream).where(between).groupBy("commit_id")
    # One row per commit id: of two unlogged commits with the same id, the larger counts.
    found = each.agg(F.max("row_count"), F.collect_set("kind")).collect()
    return sum(row[1] for row in found), {CommitKind(k) for row in found for k in row[2]}


def offsets_by_commit(spark: SparkSession, stream: Stream, topic: Topic) -> list[CommitOffsets]:
    """The offset ranges of each commit of a topic, and the number of offsets without a record."""
    rows = _commits(spark, stream).where(F.col("kafka_topic_id") == topic.id)
    found = []
    columns = ("commit_id", "kind", "offsets", "row_count", "quarantined_count")
    for commit_id, kind, offsets, kept, set_aside in rows.select(*columns).collect():
        ranges = {o["partition"]: (o["first_offset"], o["end_offset"]) for o in offsets}
        found.append(
            CommitOffsets(commit_id, CommitKind(kind), ranges, total(ranges) - kept - set_aside)
        )
    return found


def _named(spark: SparkSession, table: str) -> DataFrame:
    """The log's rows of a table name, for the current and all previous tables."""
    return spark.table(f"{CATALOG}.{TABLE}").where(F.col("table_name") == table)


def logged(spark: SparkSession, table: str, known: Identity | None = None) -> DataFrame:
    """The log's commits of the current table of a name."""
    return _named(spark, table).where((known or identity_of(spark, table)).rows())


def _commits(spark: SparkSession, stream: Stream) -> DataFrame:
    """The log's rows of one table, and those that it lacks, from the snapshots."""
    known = identity_of(spark, stream.table)
    logged = _named(spark, stream.table).where(known.rows())
    if lacking := _unlogged(spark, stream, known):
        return logged.unionByName(literal_rows(spark, lacking, COLUMNS))
    return logged


def _unlogged(spark: SparkSession, stream: Stream, known: Identity) -> list[tuple[Any, ...]]:
    """Rows for the own snapshots that the log lacks.

    They need not be the newest: a commit concurrent with the stream may be logged first.
    """
    last, beyond = known.logged.largest or 0, set[int]()
    if not known.logged.is_whole:
        last, beyond = logged_without_holes(_named(spark, stream.table), known)
    return [
        _row_of_snapshot(spark, stream, known.uuid, snapshot)
        for snapshot in own_snapshots(Jvm(spark), stream.table, after=last)
        if snapshot.commit.id not in beyond
    ]


def _row_of_snapshot(
    spark: SparkSession, stream: Stream, uuid: str, snapshot: OwnSnapshot
) -> tuple[Any, ...]:
    commit = snapshot.commit
    if commit.kind is CommitKind.REPLAY:
        quarantined = -snapshot.rows
    elif commit.kind in (CommitKind.STREAM, CommitKind.BACKFILL):
        quarantined = quarantine_table.count_of(spark, stream.topic, commit)
    else:
        quarantined = 0
    return _row(
        stream,
        uuid,
        commit,
        rows=snapshot.rows,
        quarantined=quarantined,
        value_bytes=None,
        started_at=None,
        committed_at=snapshot.committed_at,
    )


def _row(
    stream: Stream,
    uuid: str,
    commit: Commit,
    *,
    rows: int,
    quarantined: int,
    value_bytes: int | None,
    started_at: datetime | None,
    committed_at: datetime,
) -> tuple[Any, ...]:
    # A replay has no offsets: those of its records belong to the commit that quarantined them.
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
        uuid,
    )


def _append(
    spark: SparkSession,
    rows: Callable[[], list[tuple[Any, ...]]],
    *,
    again: bool,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Append rows of commits, with concurrent writers.

    Args:
        rows: Returns them. It is called after their branch was created, so that it sees what
            others wrote before; if the log changes later, publishing the branch is refused.
        again: Whether some may be in the log already, as after a conflict.
        check: Raises if they must not be written; called before ``rows``.
    """

    def write(branch: str) -> bool:
        nonlocal again
        check()
        wanted = rows()
        lacking = _lacking(spark, wanted) if again else wanted
        again = True
        return _write(spark, lacking, branch)

    _publish(spark, write)


def _lacking(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows whose commits the log lacks."""
    number, uuid = COLUMNS.names.index("commit_id"), COLUMNS.names.index("table_uuid")
    wanted = {(row[uuid], row[number]): row for row in rows}
    log = spark.table(f"{CATALOG}.{TABLE}").select("table_uuid", "commit_id")
    mine = F.col("table_uuid").isin([of for of, _ in wanted])
    mine &= F.col("commit_id").isin([commit_id for _, commit_id in wanted])
    known = {(row[0], row[1]) for row in log.where(mine).collect()}
    return [row for key, row in wanted.items() if key not in known]


def _publish(spark: SparkSession, write: Callable[[str], bool]) -> None:
    jvm = Jvm(spark)
    with _publishing:
        first_snapshot(jvm, TABLE)
        publish_on(jvm, TABLE, _BRANCH_PREFIX, write, "others keep writing to it")


def _write(spark: SparkSession, rows: Sequence[tuple[Any, ...]], branch: str) -> bool:
    """Append rows to a branch; whether there are any."""
    if rows:
        table = f"{CATALOG}.{TABLE}.branch_{branch}"
        literal_rows(spark, rows, COLUMNS).writeTo(table).append()
    return bool(rows)
