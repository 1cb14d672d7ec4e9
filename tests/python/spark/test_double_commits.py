"""Two commits with one id, as a program that compares none could make them.

Fails when a commit id that is there twice is not found.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind, own_snapshots
from spark_ingest.commits.resume import Position
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.operate.double_commits import DoubleCommit, find
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import side_commit

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

    def find(self) -> list[DoubleCommit]:
        return find(self.spark, self.stream)


@pytest.fixture
def made(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Bronze:
    """A table whose commits are published whatever their id, as by another program."""
    monkeypatch.setattr("spark_ingest.commits.branch.check_number", lambda *_: None)
    name = f"double{next(_NUMBERS)}"
    meta = IngestMeta(topic=name)
    stream = Stream(f"test.{name}", f"bronze.{name}", "", {}, frozenset(), meta)
    bronze.create_schema(spark)
    quarantine_table.create(spark)
    commit_log.create(spark)
    bronze.create_table(spark, stream.table, bronze.METADATA, stream.ingest.partitioned_by)
    first_snapshot(Jvm(spark), stream.table)
    commit_log.name_tables(spark, [stream])
    found = Bronze(spark, stream)
    found.commit(1, STREAM, 20, 24)
    return found


def expire(made: Bronze) -> None:
    """Maintenance: files put together, a snapshot of nobody, and all others expired."""
    call = f"call {CATALOG}.system."
    of = f"table => '{made.stream.table}'"
    made.spark.sql(f"{call}rewrite_data_files({of}, options => map('rewrite-all', 'true'))")
    made.spark.sql(f"insert into {made.table} select * from {made.table} limit 0")
    made.spark.sql(
        f"{call}expire_snapshots({of}, older_than => timestamp '2100-01-01 00:00:00', "
        "retain_last => 1)"
    )
    assert own_snapshots(Jvm(made.spark), made.stream.table) == []


def test_each_commit_of_an_id_is_named_when_no_snapshot_shows_any_more(made: Bronze) -> None:
    streamed = made.commit(2, STREAM, 24, 30)
    filled = made.commit(2, BACKFILL, 15, 20)
    made.commit(3, BACKFILL, 10, 15)
    expire(made)

    (double,) = made.find()

    assert double == DoubleCommit(2, ((streamed, 6), (filled, 5)))
    assert str(double) == (
        "6 rows of 2026-03-01 12:00:02.000000 UTC and 5 rows of 2026-03-01 12:00:03.000000 UTC"
    )


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
