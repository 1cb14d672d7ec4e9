"""Two commits with one id, as an earlier version could make them: found, and renumbered.

Fails when a commit id that is there twice is not found, or is mended only in part.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from spark_ingest.lake import bronze, commit_log, quarantine_table
from spark_ingest.lake.committed import (
    BatchResult,
    Commit,
    CommitKind,
    newest_own_snapshot,
    own_snapshots,
)
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.lake.table_identity import uuid_of
from spark_ingest.operate import double_commits
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import side_commit
from spark_ingest.streaming.table_position import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NUMBERS = itertools.count(1)
TOPIC_ID = "topic-uuid"
BEGAN = datetime(2026, 3, 1, 12, tzinfo=UTC)
STREAM = CommitKind.STREAM
BACKFILL = CommitKind.BACKFILL


@dataclass
class Bronze:
    """A bronze table without Kafka, its rows committed as commits of any id and kind."""

    spark: SparkSession
    stream: Stream
    seconds: int = 0

    @property
    def table(self) -> str:
        return f"{CATALOG}.{self.stream.table}"

    def commit(self, number: int, kind: CommitKind, first: int, end: int) -> datetime:
        """Publish the rows of some offsets of partition 0 and log them; when that began."""
        self.seconds += 1
        began = BEGAN + timedelta(seconds=self.seconds)
        resume = None if kind is STREAM else {0: 30}
        made = Commit(number, TOPIC_ID, {0: first}, {0: end}, kind, resume)
        values = {
            "_kafka_topic": F.lit(self.stream.topic),
            "_kafka_topic_id": F.lit(TOPIC_ID),
            "_kafka_partition": F.lit(0),
            "_kafka_offset": F.col("id"),
            "_ingested_at": F.lit(began),
            "_commit_id": F.lit(number),
        }
        rows = self.spark.range(first, end).select(
            *(
                values.get(f.name, F.lit(None)).cast(f.dataType).alias(f.name)
                for f in bronze.METADATA
            )
        )

        def make(here: Position) -> tuple[DataFrame, Commit]:
            return rows, made

        uuid = uuid_of(Jvm(self.spark), self.stream.table)
        assert side_commit.commit_beside(self.spark, self.stream, uuid, make) == made
        result = BatchResult(made, end - first, 0, 0, began, 0.5)
        commit_log.log_commit(self.spark, self.stream, result)
        return began

    def find(self) -> list[double_commits.DoubleCommit]:
        return double_commits.find(self.spark, self.stream)

    def ids(self) -> dict[int, tuple[int, int, int]]:
        """By commit id: rows, first offset, last offset."""
        offset = F.col("_kafka_offset")
        each = self.spark.table(self.table).groupBy("_commit_id")
        found = each.agg(F.count("*"), F.min(offset), F.max(offset)).collect()
        return {row[0]: (row[1], row[2], row[3]) for row in found}

    def log(self) -> list[tuple[Any, ...]]:
        """Commit id, kind, rows and offsets of the log, in order."""
        rows = commit_log.logged(self.spark, self.stream.table).orderBy("commit_id")
        columns = rows.select("commit_id", "kind", "row_count", "offsets").collect()
        return [(*row[:3], [tuple(o) for o in row[3]]) for row in columns]

    def since(self) -> list[datetime]:
        """When the log says that tables of this name stand there."""
        log = self.spark.table(f"{CATALOG}.{commit_log.TABLE}")
        mine = (F.col("table_name") == self.stream.table) & (F.col("kind") == "table")
        return [row[0] for row in log.where(mine).select("committed_at").collect()]


@pytest.fixture
def made(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Bronze:
    """A table whose commits are published whatever their id, as in the earlier version."""
    monkeypatch.setattr("spark_ingest.lake.branch.check_number", lambda *_: None)
    name = f"double{next(_NUMBERS)}"
    stream = Stream(
        name=f"test.{name}",
        table=f"bronze.{name}",
        description="",
        columns={},
        tags=frozenset(),
        ingest=IngestMeta(topic=name),
    )
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    commit_log.create(spark)
    bronze.create_table(
        spark, stream.table, bronze.METADATA, stream.ingest.partitioned_by
    )
    first_snapshot(Jvm(spark), stream.table)
    commit_log.name_table(spark, stream)
    found = Bronze(spark, stream)
    found.commit(1, STREAM, 20, 24)
    return found


def expire(made: Bronze) -> None:
    """Maintenance: files put together, a snapshot of nobody, and all others expired."""
    call = f"call {CATALOG}.system."
    of = f"table => '{made.stream.table}'"
    made.spark.sql(
        f"{call}rewrite_data_files({of}, options => map('rewrite-all', 'true'))"
    )
    made.spark.sql(f"insert into {made.table} select * from {made.table} limit 0")
    made.spark.sql(
        f"{call}expire_snapshots({of}, older_than => timestamp '2100-01-01 00:00:00', "
        "retain_last => 1)"
    )
    assert own_snapshots(Jvm(made.spark), made.stream.table) == []


@pytest.mark.parametrize(
    "is_expired", [False, pytest.param(True, marks=pytest.mark.nightly)]
)
def test_a_backfill_with_the_streams_id_gets_one_of_its_own(
    made: Bronze, is_expired: bool
) -> None:
    streamed = made.commit(2, STREAM, 24, 30)
    filled = made.commit(2, BACKFILL, 15, 20)
    made.commit(3, BACKFILL, 10, 15)
    assert [row[:2] for row in made.log()] == [(1, STREAM), (2, STREAM), (3, BACKFILL)]
    if is_expired:
        expire(made)

    (double,) = made.find()

    assert (double.commit_id, double.kept.began, double.kept_kind) == (
        2, streamed, STREAM,
    )  # fmt: skip
    ((rows, taken),) = double.others
    assert (rows.began, rows.count) == (filled, 5)
    assert taken == double_commits.Taken(BACKFILL, {0: (15, 20)})
    (commit,) = double_commits.renumber(made.spark, made.stream, double)

    assert (commit.id, commit.position) == (4, {0: 30})
    assert newest_own_snapshot(Jvm(made.spark), made.stream.table) is not None
    assert made.ids() == {
        1: (4, 20, 23), 2: (6, 24, 29), 3: (5, 10, 14), 4: (5, 15, 19),
    }  # fmt: skip
    assert made.log()[1:] == [
        (2, STREAM, 6, [(0, 24, 30)]),
        (3, BACKFILL, 5, [(0, 10, 15)]),
        (4, BACKFILL, 5, [(0, 15, 20)]),
    ]
    assert made.find() == []
    assert double_commits.find(made.spark, made.stream, full=True) == []
    # Whoever found it too and comes later has nothing to do.
    assert double_commits.renumber(made.spark, made.stream, double) == []
    assert len(made.log()) == 4


@pytest.mark.nightly
def test_rows_of_the_stream_that_the_log_lacks_stay_its_own(made: Bronze) -> None:
    made.commit(2, BACKFILL, 15, 20)
    made.commit(2, STREAM, 24, 30)
    made.commit(3, STREAM, 30, 33)
    before = made.since()
    (double,) = made.find()

    (commit,) = double_commits.renumber(made.spark, made.stream, double)

    assert (commit.id, commit.kind, commit.position) == (4, STREAM, {0: 33})
    assert made.log()[-1] == (4, STREAM, 6, [(0, 24, 30)])
    # By which dbt knows that a model may have read them under another id.
    assert made.since() > before


@pytest.mark.nightly
def test_a_renumbering_that_a_crash_kept_out_of_the_log_is_written_down_later(
    made: Bronze, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.commit(2, STREAM, 24, 30)
    made.commit(2, BACKFILL, 15, 20)
    (double,) = made.find()
    with monkeypatch.context() as patch:
        patch.setattr("spark_ingest.lake.commit_log.log_commit", lambda *_: None)
        double_commits.renumber(made.spark, made.stream, double)
    assert len(made.log()) == 2
    assert made.find() == []

    commit_log.catch_up(made.spark, made.stream, lambda: None)

    assert made.log()[-1] == (3, BACKFILL, 5, [(0, 15, 20)])


def test_a_table_of_as_many_rows_as_were_logged_is_not_read(
    made: Bronze, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.commit(2, STREAM, 24, 30)
    read: list[str] = []
    table = type(made.spark).table

    def noted(session: SparkSession, name: str) -> DataFrame:
        read.append(name)
        return table(session, name)

    monkeypatch.setattr(type(made.spark), "table", noted)
    assert made.find() == []
    assert made.table not in read
    # Rows that somebody wrote again have the begin of their batch still.
    made.spark.sql(f"insert into {made.table} select * from {made.table}")
    assert made.find() == []
    assert made.table in read
