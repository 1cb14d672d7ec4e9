"""The commit log: what each commit of each stream took, for people, for dbt and for the proof.

``bronze.ingest_commits`` has a row for each commit. It follows the tables: the snapshots'
summaries are the truth, and a row that a crash kept from being written is added at the next
start. Each row names its table by Iceberg's UUID; a row of kind ``table``, written before a
table's first commit, says which table has the name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
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
    identify,
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
    """Create the commit log where it is missing; whether it was created."""
    return bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "days(committed_at)",
        description="One row per commit of each stream: what it took and when.",
    )


def log_commit(spark: SparkSession, stream: Stream, result: BatchResult) -> None:
    """Log a commit that was just published beside a stream.

    A replay's counts are what it moved: ``rows`` more in bronze, and as many less, with a
    minus, in quarantine.
    """
    # The stream, which this commit made start over, may be logging it too.
    log_commits(spark, lambda: [(stream, result)], again=True)


def log_commits(
    spark: SparkSession,
    published: Callable[[], Sequence[tuple[Stream, BatchResult]]],
    *,
    again: bool = False,
) -> None:
    """Log commits of streams that were just published, in one append.

    Args:
        published: Gives whose commits they are and what they did: of tables that were not
            taken over, since the other writer logs their commits from the snapshots. It
            is asked when those rows can come no more, and again where they came meanwhile.
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

    Commits that a crash kept out of the log are added; their bytes and their start are no longer
    known and stay null. A table that the log does not name yet gets its row.

    Args:
        check: Raises where the table was taken over: the other writer logs its commits.
        known: What :func:`identity_of` has just returned; None to ask it here.

    Returns:
        The last table that had the name before; None where there was none.

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
    """Which table has a name now, and which commits the log has of it."""
    return identify(spark, _named(spark, table), table)


def previous_table(spark: SparkSession, stream: Stream) -> PreviousTable | None:
    """The last table that had a stream's name before, or the one that was dropped."""
    if not bronze.exists(spark, TABLE):
        return None
    here = bronze.exists(spark, stream.table)
    uuid = uuid_of(Jvm(spark), stream.table) if here else ""
    return table_identity.previous_table(_named(spark, stream.table), uuid)


def name_tables(spark: SparkSession, streams: Sequence[Stream]) -> None:
    """Name the tables of some streams in the log, in one commit; they exist."""
    jvm, now = Jvm(spark), datetime.now(UTC)
    tables = {stream.table: stream for stream in streams}

    def write(branch: str) -> bool:
        # Somebody else may have named some meanwhile.
        known = table_identity.newest_named(spark.table(f"{CATALOG}.{TABLE}"), tables)
        lacking: list[tuple[Any, ...]] = []
        for table, stream in tables.items():
            since, named = known.get(table, (None, None))
            uuid = uuid_of(jvm, table)
            if named == uuid:
                continue
            # The newest row counts, and the clock of whoever wrote the last may be ahead.
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
    """By topic id and partition: where the log, of which ``known`` was asked, has the stream.

    As tuples (topic id, partition, end offset, commit id).
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
    """The logged commits of the table that has a name now, in no order.

    No ``kinds`` means all; ``known`` is what :func:`identity_of` has just returned, None to ask it
    here.
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
    """All that was committed of each topic that a table was filled from, the newest first.

    The log's commits, and those that it lacks yet, from the snapshots. The topics are named
    by Kafka's UUID. ``until`` is the newest commit to count; None for all.
    """
    commits = _commits(spark, stream)
    if until is not None:
        commits = commits.where(F.col("commit_id") <= until)
    each = commits.select(
        "kafka_topic_id", "kind", "commit_id", F.explode_outer("offsets").alias("o")
    )
    apart = F.col("kind").isin(str(CommitKind.GAP), str(CommitKind.BACKFILL))
    # One row for all that a stream took of a partition, and one for each other range.
    rows = (
        each.groupBy(
            "kafka_topic_id", "kind", "o.partition", F.when(apart, F.col("commit_id")).alias("of")
        )
        .agg(F.min("o.first_offset"), F.max("o.end_offset"), F.max("commit_id"))
        .collect()
    )
    return by_topic([tuple(row) for row in rows])


def committed_ranges(spark: SparkSession, stream: Stream, topic: Topic) -> Committed:
    """All that was committed of one topic."""
    return committed(spark, stream).get(topic.id, Committed({}, 0, {}, {}))


def grown(
    spark: SparkSession, stream: Stream, after: int, until: int
) -> tuple[int, set[CommitKind]]:
    """Rows that a table's commits above ``after`` brought, up to ``until``, and their kinds."""
    between = F.col("commit_id").between(after + 1, until)
    each = _commits(spark, stream).where(between).groupBy("commit_id")
    # A row of each commit: of two that the log lacks and that have one id the larger counts.
    found = each.agg(F.max("row_count"), F.collect_set("kind")).collect()
    return sum(row[1] for row in found), {CommitKind(k) for row in found for k in row[2]}


def offsets_by_commit(spark: SparkSession, stream: Stream, topic: Topic) -> list[CommitOffsets]:
    """What each commit of a topic took, and how many of its offsets held no record."""
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
    """The log's rows of a table's name, whichever table had it then."""
    return spark.table(f"{CATALOG}.{TABLE}").where(F.col("table_name") == table)


def logged(spark: SparkSession, table: str, known: Identity | None = None) -> DataFrame:
    """The log's commits of the table that has a name now."""
    return _named(spark, table).where((known or identity_of(spark, table)).rows())


def _commits(spark: SparkSession, stream: Stream) -> DataFrame:
    """The log's rows of one table, and those that it lacks yet, from the snapshots."""
    known = identity_of(spark, stream.table)
    logged = _named(spark, stream.table).where(known.rows())
    if lacking := _unlogged(spark, stream, known):
        return logged.unionByName(literal_rows(spark, lacking, COLUMNS))
    return logged


def _unlogged(spark: SparkSession, stream: Stream, known: Identity) -> list[tuple[Any, ...]]:
    """Rows of the log for the own snapshots that it lacks.

    They need not be the newest: a commit beside the stream may be written down first.
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
        uuid,
    )


def _append(
    spark: SparkSession,
    rows: Callable[[], list[tuple[Any, ...]]],
    *,
    again: bool,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Append rows of commits, whoever else is appending them.

    Args:
        rows: Gives them. It is asked behind the making of the branch that they are written to,
            which is refused where the log moves: what others wrote before is known by then.
        again: Whether some may be in the log already; behind a refusal they may be, too.
        check: Raises where they are not to be written after all; asked at the same moment.
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
    """The rows whose commits the log lacks now."""
    number, uuid = COLUMNS.names.index("commit_id"), COLUMNS.names.index("table_uuid")
    wanted = {(row[uuid], row[number]): row for row in rows}
    log = spark.table(f"{CATALOG}.{TABLE}").select("table_uuid", "commit_id")
    mine = F.col("table_uuid").isin([of for of, _ in wanted])
    mine &= F.col("commit_id").isin([commit_id for _, commit_id in wanted])
    known = {(row[0], row[1]) for row in log.where(mine).collect()}
    return [row for key, row in wanted.items() if key not in known]


def _publish(spark: SparkSession, write: Callable[[str], bool]) -> None:
    jvm = Jvm(spark)
    first_snapshot(jvm, TABLE)
    publish_on(jvm, TABLE, _BRANCH_PREFIX, write, "others keep writing to it")


def _write(spark: SparkSession, rows: Sequence[tuple[Any, ...]], branch: str) -> bool:
    """Append rows on a branch; whether there are any."""
    if rows:
        table = f"{CATALOG}.{TABLE}.branch_{branch}"
        literal_rows(spark, rows, COLUMNS).writeTo(table).append()
    return bool(rows)
