"""Which table stands under a name: the commit log's rows belong to one by Iceberg's UUID.

A table that was dropped and recreated has another. What the log says of the earlier one is
kept, and is no table's place any more. Rows that an older version wrote tell no table: they
are given to the one that stands there from the first commit on that it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_ingest.commits.committed import CommitKind, own_snapshots
from spark_ingest.commits.offsets import within
from spark_ingest.lake.jvm import CATALOG, Jvm

KIND = "table"
"""The kind of the log's rows that say which table stands there: no commits."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Earlier:
    """Another table that stood under a stream's name before, as the log tells of it.

    Attributes:
        uuid: Iceberg's UUID of it; None where the log is older than that column.
        last: Its newest commit.
        topic_id: Kafka's UUID of the topic that it was filled from.
        ranges: By partition, from the first offset that it took to the one behind the last.
    """

    uuid: str | None
    last: int
    topic_id: str
    ranges: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Logged:
    """Commits of a table in the log: the smallest, the largest, and how many there are."""

    smallest: int | None
    largest: int | None
    count: int

    @property
    def is_whole(self) -> bool:
        """Whether there is no hole among them."""
        return self.largest is None or (self.smallest, self.largest) == (1, self.count)


@dataclass(frozen=True)
class Identity:
    """A table, and what the log says of the tables of its name.

    Attributes:
        uuid: Iceberg's UUID of the table.
        is_newest: Whether the log names it as the one that stands there.
        first: From this commit on rows that tell no table are its; None where none is.
        logged: The commits whose rows tell this table.
        has_others: Whether there are commits of other tables, or of rows that tell none.
    """

    uuid: str
    is_newest: bool
    first: int | None
    logged: Logged
    has_others: bool

    @property
    def has_commits(self) -> bool:
        """Whether the log has a commit of this table."""
        return self.logged.count > 0 or self.first is not None

    def rows(self) -> Column:
        """Whether a row of the log, of this table's name, is a commit of this table."""
        mine = F.col("table_uuid") == self.uuid
        if self.first is not None:
            mine = mine | self.untold()
        return mine & (F.col("kind") != KIND)

    def untold(self) -> Column:
        """Whether a row tells no table and is this one's all the same."""
        first = F.lit(None) if self.first is None else F.lit(self.first)
        return F.col("table_uuid").isNull() & (F.col("commit_id") >= first)


def uuid_of(jvm: Jvm, table: str) -> str:
    """Iceberg's UUID of the table that stands under a name."""
    return str(jvm.iceberg_table(table).uuid())


def identify(spark: SparkSession, log: DataFrame, table: str) -> Identity:
    """Which table stands under a name, and which rows of the log are its.

    ``log`` has the log's rows of that name, each with its kind; ``table`` is ``schema.name``
    and exists.
    """
    uuid = uuid_of(Jvm(spark), table)
    is_of_table, is_mine = F.col("kind") == KIND, F.col("table_uuid").eqNullSafe(uuid)
    named = F.when(is_of_table, F.struct("committed_at", "table_uuid"))
    # All that the start of a stream asks the log, in one scan of it.
    (told,) = log.agg(
        F.max(named)["table_uuid"].alias("newest"),
        F.count_if(is_of_table & is_mine).alias("named"),
        F.count_if(F.col("table_uuid").isNull()).alias("untold"),
        F.count_if(~is_of_table & ~is_mine).alias("others"),
        *_span(F.when(~is_of_table & is_mine, F.col("commit_id"))),
    ).collect()
    first = None
    # Once a table has its row, no row that tells none is its: they were asked then.
    if told["untold"] and not told["named"]:
        first = _first_shown(spark, log.where("table_uuid is null"), table)
    is_newest, logged = told["newest"] == uuid, Logged(*told[-3:])
    return Identity(uuid, is_newest, first, logged, told["others"] > 0)


def logged_without_holes(log: DataFrame, known: Identity) -> tuple[int, set[int]]:
    """The commit up to which the log has all of a table, and those that it has beyond.

    ``log`` has the log's rows of the table's name, each with its kind; ``known`` is what
    :func:`identify` said of them.
    """
    commit_id = F.col("commit_id")
    ids = log.where(known.rows()).select("table_name", "commit_id")
    (span,) = ids.agg(*_span(commit_id)).collect()
    logged = Logged(*span)
    if logged.is_whole:
        return logged.largest or 0, set()
    of_name = Window.partitionBy("table_name").orderBy("commit_id")
    following = F.lead("commit_id").over(of_name)
    holes = ids.distinct().withColumn("following", following)
    holes = holes.where("following > commit_id + 1")
    row = holes.agg(F.min("commit_id")).first()
    last = row[0] if logged.smallest == 1 and row is not None and row[0] else 0
    return last, {row[0] for row in ids.where(commit_id > last).toLocalIterator()}


def _span(commit_id: Column) -> tuple[Column, Column, Column]:
    return F.min(commit_id), F.max(commit_id), F.count_distinct(commit_id)


def newest_named(log: DataFrame, tables: Iterable[str]) -> dict[str, tuple[datetime, str]]:
    """By name, since when the log says that a table stands there, and Iceberg's UUID of it.

    One that the log does not name, of ``tables`` as ``schema.name``, is left out.
    """
    named = log.where((F.col("kind") == KIND) & F.col("table_name").isin(list(tables)))
    since = F.unix_micros("committed_at").alias("since")
    newest = F.max(F.struct(since, "table_uuid")).alias("newest")
    rows = named.groupBy("table_name").agg(newest)
    return {
        name: (_EPOCH + timedelta(microseconds=micros), uuid)
        for name, micros, uuid in rows.select("table_name", "newest.*").collect()
    }


def earlier(log: DataFrame, uuid: str) -> Earlier | None:
    """The last table that stood under a name before, by the log; None where there was none.

    ``log`` has the log's rows of that name, each with its kind; ``uuid`` is Iceberg's, of the
    table that stands there now.
    """
    others = log.where((F.col("kind") != KIND) & ~F.col("table_uuid").eqNullSafe(F.lit(uuid)))
    last = others.orderBy(F.desc("committed_at"), F.desc("commit_id")).first()
    if last is None:
        return None
    its = others.where(
        F.col("table_uuid").eqNullSafe(F.lit(last["table_uuid"]))
        & (F.col("kafka_topic_id") == last["kafka_topic_id"])
    )
    rows = (
        its.select(F.explode("offsets").alias("o"))
        .groupBy("o.partition")
        .agg(F.min("o.first_offset"), F.max("o.end_offset"))
        .collect()
    )
    ranges = {row[0]: (row[1], row[2]) for row in sorted(rows)}
    return Earlier(last["table_uuid"], last["commit_id"], last["kafka_topic_id"], ranges)


def _first_shown(spark: SparkSession, log: DataFrame, table: str) -> int | None:
    """The first commit of rows that tell no table which the table itself shows.

    By a snapshot that took the same offsets, or by its rows. Commits just before it that
    brought no rows could not show any, and are taken along.
    """
    shown = [*_in_snapshots(spark, log, table), *_in_rows(spark, log, table)]
    if not shown:
        return None
    before = log.where((F.col("commit_id") < min(shown)) & (F.col("row_count") > 0))
    (last,) = before.agg(F.max("commit_id")).collect()[0]
    (first,) = log.agg(F.min("commit_id")).collect()[0]
    return int(first if last is None else last + 1)


def _in_snapshots(spark: SparkSession, log: DataFrame, table: str) -> list[int]:
    commits = {own.commit.id: own.commit for own in own_snapshots(Jvm(spark), table)}
    if not commits:
        return []
    rows = log.where(F.col("commit_id").between(min(commits), max(commits)))
    found = []
    for number, kind, topic_id, offsets in rows.select(
        "commit_id", "kind", "kafka_topic_id", "offsets"
    ).collect():
        commit = commits.get(number)
        if commit is None or commit.topic_id != topic_id or commit.kind != kind:
            continue
        if kind == CommitKind.REPLAY or dict(commit.ends) == _ends(offsets):
            found.append(number)
    return found


def _in_rows(spark: SparkSession, log: DataFrame, table: str) -> list[int]:
    data = spark.table(f"{CATALOG}.{table}")
    (oldest,) = data.agg(F.min("_commit_id")).collect()[0]
    taken = log.where((F.col("commit_id") == oldest) & (F.size("offsets") > 0))
    if oldest is None:
        return []
    row = taken.select("kafka_topic_id", "offsets").first()
    if row is None:
        return []
    took = {o["partition"]: (o["first_offset"], o["end_offset"]) for o in row["offsets"]}
    same = (F.col("_commit_id") == oldest) & (F.col("_kafka_topic_id") == row[0])
    return [] if data.where(same).where(within(took)).isEmpty() else [int(oldest)]


def _ends(offsets: list[Any]) -> Mapping[int, int]:
    return {o["partition"]: o["end_offset"] for o in offsets}
