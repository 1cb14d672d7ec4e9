"""What is written on a branch of a table: published where the table is still the one it was.

Fails when what was written on a branch is lost where refs or columns change meanwhile, or lands
in another table of the same name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from spark_ingest.commits.branch import publish_on, remove_branch
from spark_ingest.commits.committed import Commit, CommitKind
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.data_files.stage import append_rows
from spark_ingest.errors import CommitRefused, ConfigurationError, MillraceError
from spark_ingest.lake import bronze, table_change
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.sources import IngestMeta, Stream
from spark_ingest.streaming import side_commit
from tests.python.interleavings.iceberg import UNKNOWN, java_error
from tests.python.leases import take
from tests.python.spark.lakes import COLUMNS, Lake, meddle, with_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from spark_ingest.commits.resume import Position
    from spark_ingest.lake.table_change import Step
    from spark_ingest.streaming.side_commit import SideBranch


@pytest.fixture
def lake(spark: SparkSession, request: pytest.FixtureRequest) -> Lake:
    """The session's lake, with a table of the test's own."""
    spark.sql("create schema if not exists lake.bronze")
    return with_table(Lake(spark), request.node.name)


@pytest.mark.parametrize("when", ["before", "behind the writing"])
def test_what_was_worked_out_for_a_table_is_not_published_to_the_next_of_its_name(
    lake: Lake, when: str
) -> None:
    uuid = uuid_of(lake.jvm, lake.table)

    def make_again() -> None:
        lake.spark.sql(f"drop table lake.{lake.table}")
        lake.spark.sql(f"create table lake.{lake.table} ({COLUMNS}) using iceberg")
        first_snapshot(lake.jvm, lake.table)

    def write(branch: str) -> bool:
        rows = lake.spark.createDataFrame([(1, "n")], COLUMNS).coalesce(1)
        rows.writeTo(f"lake.{lake.table}.branch_{branch}").append()
        if when != "before":
            make_again()
        return True

    if when == "before":
        make_again()
    with pytest.raises(MillraceError, match="was dropped and recreated meanwhile"):
        publish_on(lake.jvm, lake.table, "side_", write, "never", uuid)
    assert lake.ids() == []


def test_a_table_gets_its_columns_though_another_stream_gave_it_some_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add() -> None:
        update = lake.jvm.iceberg_table(lake.table).updateSchema()
        update.unionByNameWith(lake.jvm.iceberg_schema(columns("first string"))).commit()

    def columns(ddl: str) -> StructType:
        return lake.spark.createDataFrame([], ddl).schema

    done = meddle(monkeypatch, "spark_ingest.lake.bronze", add)
    bronze.evolve(lake.jvm, lake.table, columns("second string"))
    assert done
    got = lake.spark.table(f"lake.{lake.table}").columns
    assert sorted(got) == ["first", "id", "note", "second"]
    with pytest.raises(ConfigurationError, match="cannot evolve to the topic's schema"):
        bronze.evolve(lake.jvm, lake.table, columns("note int"))


def test_what_was_published_beside_a_stream_stays_so_where_its_branch_cannot_be_removed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(branch: str) -> bool:
        rows = lake.spark.createDataFrame([(1, "n")], COLUMNS).coalesce(1)
        rows.writeTo(f"lake.{lake.table}.branch_{branch}").append()
        return True

    def refuse(jvm: Jvm, table: str, branch: str) -> None:
        raise CommitRefused("others kept changing it")

    monkeypatch.setattr("spark_ingest.commits.branch.remove_branch", refuse)
    assert publish_on(lake.jvm, lake.table, "side_", write, "never")
    assert lake.ids() == [1]


def test_files_beside_a_stream_are_appended_once_though_an_answer_is_lost(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Step] = []

    def commit_of_all(transaction: Any) -> Step:
        commit = table_change.commit_of_all(transaction)

        def send() -> None:
            sent.append(commit)
            commit()
            if len(sent) == 1:
                raise java_error(UNKNOWN)

        return send

    monkeypatch.setattr(side_commit, "commit_of_all", commit_of_all)
    assert beside(lake, lambda branch, commit: branch.stage_files(lake.write(1), commit)) == 2
    assert len(sent) == 1
    assert lake.ids() == [0, 1]


def test_what_is_staged_beside_a_stream_is_staged_again_where_a_schema_came(lake: Lake) -> None:
    def stage(branch: SideBranch, commit: Commit) -> None:
        branch.unstage()
        branch.stage_files(lake.write(1), commit)
        branch.unstage()
        rows = lake.spark.createDataFrame([(2, "n")], COLUMNS).coalesce(1)
        branch.stage(partial(append_rows, rows, commit))
        branch.unstage()
        branch.stage_files(lake.write(3), commit)

    assert beside(lake, stage) == 2
    assert lake.ids() == [0, 3]


def test_files_are_not_appended_to_a_branch_that_was_removed(lake: Lake) -> None:
    """The machine slept, and `maintain` took the branch for abandoned."""

    def stage(branch: SideBranch, commit: Commit) -> None:
        iceberg = lake.jvm.iceberg_table(lake.table)
        (name,) = (ref for ref in iceberg.refs() if ref.startswith(side_commit.BRANCH_PREFIX))
        remove_branch(lake.jvm, lake.table, name)
        branch.stage_files(lake.write(1), commit)

    with pytest.raises(CommitRefused, match="was removed before its commit"):
        beside(lake, stage)
    assert lake.ids() == [0]


def beside(lake: Lake, stage: Callable[[SideBranch, Commit], None]) -> int:
    """Commit beside a stream that has committed the row 0; the commit's id."""
    writer = take(lake.jvm, lake.table)
    lake.stage_files(writer, 0)
    writer.publish()
    writer.release()
    stream = Stream("shop.t", lake.table, "", {}, frozenset(), IngestMeta(topic="t"))

    def staged(here: Position, branch: SideBranch) -> Commit:
        kind = CommitKind.BACKFILL
        commit = Commit(here.commit_id + 1, "topic", {}, {}, kind, resume=here.offsets)
        stage(branch, commit)
        return commit

    uuid = uuid_of(lake.jvm, lake.table)
    commit = side_commit.stage_beside(lake.spark, stream, uuid, staged)
    assert commit is not None
    return commit.id


def test_what_is_beside_a_stream_is_published_though_refs_change_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []

    def write(branch: str) -> bool:
        rows = lake.spark.createDataFrame([(1, "n")], COLUMNS).coalesce(1)
        rows.writeTo(f"lake.{lake.table}.branch_{branch}").append()
        written.append(branch)
        return True

    def renew() -> None:
        update = lake.jvm.iceberg_table(lake.table).updateProperties()
        update.set("millrace.renewed.writer_x", "1").commit()

    done = meddle(monkeypatch, "spark_ingest.commits.branch", renew)
    assert publish_on(lake.jvm, lake.table, "side_", write, "never")
    assert done
    assert len(written) == 1
    assert sorted(lake.jvm.iceberg_table(lake.table).refs()) == ["main"]
