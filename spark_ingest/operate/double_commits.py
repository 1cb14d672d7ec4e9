"""Commit ids that two commits of a table have: found by their rows, and set right.

An earlier version could publish a replay or a backfill under the id of the stream's next
commit. dbt, having read one of the two, passes over the other, and the commit log has a row for
one. All rows of a commit have one ``_ingested_at``, the start of its batch, so the rows tell
when no snapshot does any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ingest.connect.broker import Topic
from spark_ingest.lake import bronze, commit_log, quarantine_table
from spark_ingest.lake.committed import (
    BatchResult,
    Commit,
    CommitKind,
    Committed,
    own_snapshots,
)
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.lake.offsets import Span
from spark_ingest.lake.table_identity import uuid_of
from spark_ingest.operate import proof_marks
from spark_ingest.sources import Stream
from spark_ingest.streaming import set_back
from spark_ingest.streaming.side_commit import commit_beside
from spark_ingest.streaming.table_position import Position

_PLACE = ["_kafka_topic_id", "_kafka_partition", "_kafka_offset"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEWEST = 2**62


@dataclass(frozen=True)
class Rows:
    """The rows of one commit of a table.

    Attributes:
        micros: Their ``_ingested_at``, in microseconds since 1970.
        count: How many there are.
        topic_id: Kafka's UUID of their topic.
        spans: By partition, from their first offset to the one behind the last.
    """

    micros: int
    count: int
    topic_id: str
    spans: Mapping[int, Span]

    @property
    def began(self) -> datetime:
        """When their batch began."""
        return _EPOCH + timedelta(microseconds=self.micros)

    def lie_within(self, topic_id: str, ranges: Mapping[int, Span]) -> bool:
        """Whether all of them are of a topic's offset ranges."""
        return topic_id == self.topic_id and all(
            p in ranges and ranges[p][0] <= first and end <= ranges[p][1]
            for p, (first, end) in self.spans.items()
        )


@dataclass(frozen=True)
class Logged:
    """What the commit log says of one commit."""

    kind: CommitKind
    topic_id: str
    started_micros: int | None
    rows: int
    ranges: Mapping[int, Span]


@dataclass(frozen=True)
class Taken:
    """What a commit took, for its row in the log: offsets by partition, none for a replay."""

    kind: CommitKind
    ranges: Mapping[int, Span]


@dataclass(frozen=True)
class DoubleCommit:
    """A commit id that rows of several commits have.

    Attributes:
        commit_id: The id.
        kept: The rows of the commit that the log has; they keep the id.
        kept_kind: Its kind; None where the log has none.
        others: Of each other commit, its rows and what it took.
    """

    commit_id: int
    kept: Rows
    kept_kind: CommitKind | None
    others: tuple[tuple[Rows, Taken], ...]

    def __str__(self) -> str:
        told = [(self.kept, self.kept_kind or "not in the commit log")]
        told += [(rows, taken.kind) for rows, taken in self.others]
        each = [
            f"{rows.count:,} rows of {rows.began:%Y-%m-%d %H:%M:%S.%f} UTC ({kind})"
            for rows, kind in told
        ]
        return " and ".join(each)


def find(
    spark: SparkSession, stream: Stream, *, full: bool = False
) -> list[DoubleCommit]:
    """The commit ids of a stream's table that are there more than once.

    Args:
        spark: A session on the lake.
        stream: Whose table, which exists.
        full: Look at the rows even where the table has as many as one commit for each id
            brought, which the log and the table's metadata tell.
    """
    if not full and _has_as_many_as_logged(spark, stream):
        return []
    table = spark.table(f"{CATALOG}.{stream.table}")
    began, commit_id = F.unix_micros("_ingested_at"), F.col("_commit_id")
    spread = table.groupBy(commit_id).agg(
        F.min("_ingested_at").alias("first"), F.max("_ingested_at").alias("last")
    )
    double = spread.where("_commit_id is not null and first < last")
    ids = [row[0] for row in double.select("_commit_id").collect()]
    found: dict[int, dict[int, list[tuple[str, int, int, int, int]]]] = {}
    if ids:
        places = table.where(commit_id.isin(ids)).groupBy(
            commit_id, began, "_kafka_topic_id", "_kafka_partition"
        )
        offset = F.col("_kafka_offset")
        each = places.agg(F.count("*"), F.min(offset), F.max(offset) + 1)
        for number, micros, *place in each.collect():
            found.setdefault(number, defaultdict(list))[micros].append(tuple(place))
    return [
        _double(spark, stream, number, [_rows(m, p) for m, p in sorted(places.items())])
        for number, places in sorted(found.items())
    ]


def renumber(spark: SparkSession, stream: Stream, double: DoubleCommit) -> list[Commit]:
    """Give the rows that an id has too many ids of their own; the stream may be running.

    The table's row in the log says first that it stands there as it does since now, so that no
    increment of dbt goes on: which of the commits a model has read nobody knows.

    Args:
        spark: A session on the lake.
        stream: Whose table.
        double: What :func:`find` found.

    Returns:
        The new commits; fewer where somebody else did it meanwhile.

    Raises:
        CommitRefused: The stream was faster each time.
    """
    commit_log.create(spark)
    commit_log.name_table(spark, stream)
    uuid = uuid_of(Jvm(spark), stream.table)
    set_back.stands_since_now(spark, uuid)
    commits = []
    for rows, taken in double.others:
        commit = _renumbered(spark, stream, uuid, double.commit_id, rows, taken)
        if commit is not None:
            commits.append(commit)
    return commits


def _renumbered(
    spark: SparkSession,
    stream: Stream,
    uuid: str,
    commit_id: int,
    rows: Rows,
    taken: Taken,
) -> Commit | None:
    mine = (
        f"_commit_id = {commit_id} and "
        f"_ingested_at = timestamp '{rows.began:%Y-%m-%d %H:%M:%S.%f} UTC'"
    )

    def make(here: Position) -> tuple[DataFrame, Commit] | None:
        table = spark.table(f"{CATALOG}.{stream.table}").where(mine)
        if table.isEmpty():
            return None
        # The offsets of an earlier topic mean nothing in a commit of the one that is there now.
        is_placed = rows.topic_id == here.topic_id
        commit = Commit(
            here.commit_id + 1,
            str(here.topic_id),
            {p: first for p, (first, _) in taken.ranges.items() if is_placed},
            {p: end for p, (_, end) in taken.ranges.items() if is_placed},
            taken.kind if is_placed else CommitKind.REPLAY,
            resume=here.offsets,
        )
        number = F.lit(commit.id).cast("bigint")
        return table.withColumn("_commit_id", number), commit

    commit = commit_beside(spark, stream, uuid, make, replaced=mine)
    if commit is None:
        return None
    if taken.kind is CommitKind.REPLAY:
        quarantined = -rows.count
    elif commit.kind is CommitKind.REPLAY:
        quarantined = 0
    else:
        quarantined = quarantine_table.count_of(spark, stream.topic, commit)
    seconds = (datetime.now(UTC) - rows.began).total_seconds()
    result = BatchResult(commit, rows.count, quarantined, 0, rows.began, seconds)
    commit_log.log_commit(spark, stream, result)
    return commit


def _has_as_many_as_logged(spark: SparkSession, stream: Stream) -> bool:
    """Whether a table has as many rows as its commits brought, one of each id."""
    now = proof_marks.head(Jvm(spark), stream.table)
    if now is None:
        return True
    if now.has_deletes or not bronze.exists(spark, commit_log.TABLE):
        return False
    brought, _ = commit_log.grown(spark, stream, 0, now.commit_id or _NEWEST)
    return brought == now.records


def _rows(micros: int, places: Sequence[tuple[str, int, int, int, int]]) -> Rows:
    spans = {p: (first, end) for _, p, _, first, end in places}
    return Rows(micros, sum(place[2] for place in places), places[0][0], spans)


def _double(
    spark: SparkSession, stream: Stream, commit_id: int, each: list[Rows]
) -> DoubleCommit:
    logged = _logged(spark, stream, commit_id)
    kept = kept_of(each, logged)
    others = [
        (rows, _taken(spark, stream, commit_id, rows)) for rows in each if rows != kept
    ]
    kind = None if logged is None else logged.kind
    return DoubleCommit(commit_id, kept, kind, tuple(others))


def _logged(spark: SparkSession, stream: Stream, commit_id: int) -> Logged | None:
    if not bronze.exists(spark, commit_log.TABLE):
        return None
    log = commit_log.logged(spark, stream.table).where(F.col("commit_id") == commit_id)
    row = log.select(
        "kind", "kafka_topic_id", F.unix_micros("started_at"), "row_count", "offsets"
    ).first()
    if row is None:
        return None
    ranges = {o["partition"]: (o["first_offset"], o["end_offset"]) for o in row[4]}
    return Logged(CommitKind(row[0]), row[1], row[2], row[3], ranges)


def kept_of(each: Sequence[Rows], logged: Logged | None) -> Rows:
    """Which rows of an id are of the commit that the log has: by begin, offsets or number.

    Args:
        each: The rows of each commit.
        logged: What the log says; a row that was written late does not say when it began.
    """
    if logged is not None:
        for rows in each:
            if rows.micros == logged.started_micros:
                return rows
        for rows in each:
            if logged.ranges and rows.lie_within(logged.topic_id, logged.ranges):
                return rows
        for rows in each:
            if not logged.ranges and rows.count == logged.rows:
                return rows
    return each[0]


def _taken(spark: SparkSession, stream: Stream, commit_id: int, rows: Rows) -> Taken:
    """What the commit of some rows took: by its snapshot, or by the rows and all commits."""
    snapshots = own_snapshots(Jvm(spark), stream.table, after=commit_id - 1)
    for own in snapshots:
        ranges = {
            p: (own.commit.starts.get(p, 0), end) for p, end in own.commit.ends.items()
        }
        if own.commit.id == commit_id and rows.lie_within(own.commit.topic_id, ranges):
            return Taken(own.commit.kind, ranges)
    if _is_replayed(spark, stream, commit_id, rows):
        return Taken(CommitKind.REPLAY, {})
    topic = Topic(stream.topic, rows.topic_id, tuple(rows.spans))
    return taken_by(rows, commit_log.committed_ranges(spark, stream, topic))


def _is_replayed(
    spark: SparkSession, stream: Stream, commit_id: int, rows: Rows
) -> bool:
    """Whether quarantine has the records of some rows: a replay moved them."""
    aside = quarantine_table.of_topic(spark, stream.topic, rows.topic_id)
    table = spark.table(f"{CATALOG}.{stream.table}").where(
        (F.col("_commit_id") == commit_id)
        & (F.unix_micros("_ingested_at") == rows.micros)
    )
    return table.join(aside.select(*_PLACE), _PLACE, "left_anti").isEmpty()


def taken_by(rows: Rows, committed: Committed) -> Taken:
    """What the commit of some rows took, where no snapshot tells.

    Within the stream's offsets it is one of the stream. Outside it is a backfill's, of all that
    nobody else has between the commits around: these follow one another without a gap.

    Args:
        rows: The rows.
        committed: What the log has of their topic.
    """
    spans = committed.spans()
    if all(
        p in committed.ranges
        and committed.ranges[p][0] <= first
        and end <= committed.ranges[p][1]
        for p, (first, end) in rows.spans.items()
    ):
        return Taken(CommitKind.STREAM, rows.spans)
    ranges = {}
    for p, (first, end) in rows.spans.items():
        before = [b for _, b in spans.get(p, ()) if b <= first]
        behind = [a for a, _ in spans.get(p, ()) if a >= end]
        ranges[p] = (max(before, default=first), min(behind, default=end))
    return Taken(CommitKind.BACKFILL, ranges)
