"""What a writer stages: seen by nobody, and published only where the table did not move.

Fails when readers see staged rows, or a batch is published that must not be.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from spark_ingest.errors import CommitRefused
from tests.python.leases import take
from tests.python.spark import lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def lake(spark: SparkSession, request: pytest.FixtureRequest) -> lakes.Lake:
    """The lake of the session's sandbox, with a table of the test's own."""
    spark.sql("create schema if not exists lake.bronze")
    return lakes.with_table(lakes.Lake(spark), request.node.name)


@lakes.each_way
def test_what_is_staged_is_seen_by_no_reader_until_it_is_published(
    lake: lakes.Lake, stage: str
) -> None:
    writer = take(lake.jvm, lake.table)

    getattr(lake, stage)(writer, 1)

    assert lake.ids() == []
    writer.publish()
    assert lake.ids() == [1]
    writer.release()


@lakes.each_way
def test_nothing_is_published_behind_rows_that_came_meanwhile(lake: lakes.Lake, stage: str) -> None:
    writer = take(lake.jvm, lake.table)
    getattr(lake, stage)(writer, 1)
    lake.spark.sql(f"insert into lake.{lake.table} values (1, 'the same one')")

    with pytest.raises(CommitRefused, match="changed concurrently"):
        writer.publish()
    writer.release()
    assert lake.ids() == [1]


def test_files_that_may_have_been_removed_as_orphans_are_not_published(
    lake: lakes.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine slept in the batch, and `maintain` worked on another one."""
    writer, now = take(lake.jvm, lake.table), time.time()
    lake.stage_files(writer, 1)
    monkeypatch.setattr(time, "time", lambda: now + 86_400)

    with pytest.raises(CommitRefused, match="orphan files"):
        writer.publish()
    writer.start_over()
    lake.stage_files(writer, 1)
    writer.publish()
    writer.release()
    assert lake.ids() == [1]
