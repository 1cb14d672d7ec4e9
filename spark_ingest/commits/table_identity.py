"""Identifies the current table of a name: each row of the commit log has Iceberg's table UUID.

A table that was dropped and recreated has another UUID. The log keeps the rows of the previous
table, but no stream resumes from them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_ingest.lake.jvm import Jvm

KIND = "table"
"""The kind of the log's rows that name a table and are no commits."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class PreviousTable:
    """The previous table of a stream's name, from the log.

    Attributes:
        uuid: Its Iceberg UUID.
        last: Its newest commit.
        topic_id: Kafka's UUID of the topic that its rows are from.
        ranges: Its offset range by partition, the end exclusive.
    """

    uuid: str
    last: int
    topic_id: str
    ranges: Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Logged:
    """Commit ids of a table in the log: the smallest, the largest, and their number."""

    smallest: int | None
    largest: int | None
    count: int

    @property
    def is_whole(self) -> bool:
        """Whether the ids are without a gap."""
        return self.largest is None or (self.smallest, self.largest) == (1, self.count)


@dataclass(frozen=True)
class Identity:
    """A table, and a summary of the log's rows of its name.

    Attributes:
        uuid: Iceberg's UUID of the table.
        is_newest: Whether the log's newest row of kind ``table`` names it.
        logged: Its commits in the log.
        has_others: Whether the log has commits of other tables.
    """

    uuid: str
    is_newest: bool
    logged: Logged
    has_others: bool

    @property
    def has_commits(self) -> bool:
        """Whether the log has a commit of this table."""
        return self.logged.count > 0

    def rows(self) -> Column:
        """Whether a row of the log, of this table's name, is a commit of this table."""
        return (F.col("table_uuid") == self.uuid) & (F.col("kind") != KIND)


def uuid_of(jvm: Jvm, table: str) -> str:
    """Iceberg's UUID of the current table of a name."""
    return str(jvm.iceberg_table(table).uuid())


@dataclass(frozen=True)
class Summary:
    """A summary of the log's rows of one table name.

    Attributes:
        newest: The table UUID in the newest row of kind ``table``; None without such a row.
        tables: The commits of each table of that name, by table UUID.
    """

    newest: str | None
    tables: Mapping[str, Logged]

    def of(self, uuid: str) -> Identity:
        """Identify the table with this UUID among those of the name."""
        others = any(logged.count for other, logged in self.tables.items() if other != uuid)
        logged = self.tables.get(uuid, Logged(None, None, 0))
        return Identity(uuid, self.newest == uuid, logged, others)


def summaries(log: DataFrame) -> dict[str, Summary]:
    """All that the start of a stream needs from the log, by table name, in one scan of ``log``."""
    is_of_table = F.col("kind") == KIND
    rows = (
        log.where("table_uuid is not null")
        .groupBy("table_name", "table_uuid")
        .agg(
            F.max(F.when(is_of_table, F.unix_micros("committed_at"))).alias("named_at"),
            *_span(F.when(~is_of_table, F.col("commit_id"))),
        )
        .collect()
    )
    tables = defaultdict[str, dict[str, Logged]](dict)
    named = defaultdict[str, list[tuple[int, str]]](list)
    for table, uuid, named_at, *span in rows:
        tables[table][uuid] = Logged(*span)
        if named_at is not None:
            named[table].append((named_at, uuid))
    return {
        table: Summary(max(named[table], default=(0, None))[1], found)
        for table, found in tables.items()
    }


def logged_without_holes(log: DataFrame, known: Identity) -> tuple[int, set[int]]:
    """The last commit id before the first gap in a table's log, and the ids after it.

    ``log`` has the log's rows of the table's name; ``known`` is from :func:`identify`.
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
    """The time and the table UUID of the newest row of kind ``table``, by table name.

    Omits those of ``tables``, each ``schema.name``, that the log does not name.
    """
    named = log.where((F.col("kind") == KIND) & F.col("table_name").isin(list(tables)))
    since = F.unix_micros("committed_at").alias("since")
    newest = F.max(F.struct(since, "table_uuid")).alias("newest")
    rows = named.groupBy("table_name").agg(newest)
    return {
        name: (_EPOCH + timedelta(microseconds=micros), uuid)
        for name, micros, uuid in rows.select("table_name", "newest.*").collect()
    }


def previous_table(log: DataFrame, uuid: str) -> PreviousTable | None:
    """The previous table of a name, from the log; None if there was none.

    ``log`` has the log's rows of that name; ``uuid`` is the Iceberg UUID of the current table.
    """
    others = log.where((F.col("kind") != KIND) & (F.col("table_uuid") != uuid))
    last = others.orderBy(F.desc("committed_at"), F.desc("commit_id")).first()
    if last is None:
        return None
    its = others.where(
        (F.col("table_uuid") == last["table_uuid"])
        & (F.col("kafka_topic_id") == last["kafka_topic_id"])
    )
    rows = (
        its.select(F.explode("offsets").alias("o"))
        .groupBy("o.partition")
        .agg(F.min("o.first_offset"), F.max("o.end_offset"))
        .collect()
    )
    ranges = {row[0]: (row[1], row[2]) for row in sorted(rows)}
    return PreviousTable(last["table_uuid"], last["commit_id"], last["kafka_topic_id"], ranges)
