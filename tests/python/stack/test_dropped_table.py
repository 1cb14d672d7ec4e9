"""A bronze table that was dropped starts over with what the broker holds, and says so.

Fails when a record is lost or doubled after a bronze table was dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, own_snapshots
from spark_ingest.commits.resume import position_of
from spark_ingest.commits.table_identity import KIND
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import first_snapshot
from spark_ingest.quarantine.choice import Choice
from spark_ingest.quarantine.replay import replay
from spark_ingest.streaming import tables
from tests.python.stack.conftest import ORDER, Feed, orders, proofs
from tests.python.stack.test_recover import expire, forget_own_snapshots
from tests.python.world.avro import framed

if TYPE_CHECKING:
    from spark_ingest.operate.verify import PartitionResult

LOG = f"lake.{commit_log.TABLE}"
UNKNOWN = 10**6


def logged(feed: Feed) -> list[tuple[Any, ...]]:
    """Commit id, kind and table of the feed's rows in the log, in the order of time."""
    rows = feed.services.spark.table(LOG)
    mine = rows.where(rows["table_name"] == feed.stream.table)
    named = mine.select("commit_id", "kind", "table_uuid", "committed_at")
    return [tuple(row)[:3] for row in named.orderBy("committed_at").collect()]


def drop(feed: Feed, table: str) -> None:
    feed.services.spark.sql(f"drop table {table}")


def holding(feed: Feed) -> list[PartitionResult]:
    """The proofs, all of which hold; no position is in quarantine twice."""
    found = proofs(feed)
    assert all(proof.holds for proof in found)
    rows = feed.services.spark.table(f"lake.{quarantine_table.TABLE}")
    mine = rows.where(rows["_kafka_topic"] == feed.topic)
    places = mine.select("_kafka_topic_id", "_kafka_partition", "_kafka_offset")
    assert all(count == 1 for count in Counter(map(tuple, places.collect())).values())
    return found


def counted(feed: Feed) -> list[tuple[int, int, int]]:
    return [(p.first, p.bronze, p.quarantined) for p in holding(feed)]


def ingested(feed: Feed) -> int:
    """Five good records in two partitions, and three bad ones; the schema's id."""
    number = feed.register(ORDER)
    late = framed(UNKNOWN, ORDER, {"id": 1, "note": ""})
    feed.send(*orders(number, 0, 3), b"junk", late)
    feed.send(*orders(number, 3, 2), b"junk", partition=1)
    feed.ingest()
    return number


@pytest.mark.nightly
def test_a_dropped_table_begins_anew_with_what_the_broker_holds(feed: Feed) -> None:
    number = ingested(feed)
    feed.send(*orders(number, 5, 2))
    feed.ingest()
    spark = feed.services.spark
    # One of the bad records was replayed into the table: it is bad again when it is read.
    spark.sql(
        f"update lake.{quarantine_table.TABLE} set replayed_at = current_timestamp() "
        f"where _kafka_topic = '{feed.topic}' and _kafka_offset = 4"
    )
    before = logged(feed)
    (first,) = {uuid for *_, uuid in before}
    assert [row[:2] for row in before] == [(0, KIND), (1, "stream"), (2, "stream")]
    drop(feed, feed.table)
    expire(feed, 0, 2)

    batches = feed.ingest()

    # The beginning is commit 1.
    assert [(b.commit_id, b.rows, b.quarantined) for b in batches] == [(2, 5, 3)]
    (note,) = feed.reports.notes
    assert f"was recreated since commit 2 of a previous table (table UUID {first})" in note
    assert "offsets of the previous table that are lost: 0: 0 to 1" in note
    assert counted(feed) == [(2, 3, 2), (0, 2, 1)]
    after = logged(feed)
    assert after[:3] == before
    assert [row[:2] for row in after[3:]] == [(0, KIND), (1, "stream"), (2, "stream")]
    assert {uuid for *_, uuid in after[3:]}.isdisjoint({first})
    # Nothing goes on with the numbers of the earlier one, whatever maintenance has left.
    forget_own_snapshots(feed)
    here = position_of(spark, feed.stream)
    assert (here.commit_id, here.offsets) == (2, {0: 7, 1: 3})
    feed.reports.notes.clear()
    feed.send(*orders(number, 7, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (3, 1)
    assert feed.reports.notes == []


@pytest.mark.long
def test_whatever_was_dropped_with_it_each_record_is_there_once(feed: Feed) -> None:
    ingested(feed)
    books = counted(feed)
    assert books == [(0, 3, 2), (0, 2, 1)]
    # Quarantine and log are other streams' too: what they have of this one goes.
    aside = f"lake.{quarantine_table.TABLE} where _kafka_topic = '{feed.topic}'"
    logged = f"{LOG} where table_name = '{feed.stream.table}'"
    for gone in ((aside,), (logged,), (aside, logged)):
        drop(feed, feed.table)
        for rows in gone:
            feed.services.spark.sql(f"delete from {rows}")
        feed.ingest()
        assert counted(feed) == books
    remaining = replay(feed.services, feed.stream, Choice()).remaining
    assert remaining == {"not_framed": 2, "unknown_id": 1}


@pytest.mark.nightly
def test_rows_that_may_be_in_the_log_already_are_written_once(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, failures = commit_log._write, ["CommitStateUnknownException"]

    def fail(*arguments: Any) -> bool:
        is_written = write(*arguments)
        if failures:
            raise PySparkException(failures.pop(0))
        return is_written

    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 1))
    feed.ingest()
    feed.send(*orders(number, 1, 1))
    monkeypatch.setattr(commit_log, "_write", fail)
    feed.ingest()
    assert failures == []
    assert [row[0] for row in logged(feed)] == [0, 1, 2]
    # As the background does it once a write has failed, whatever it failed of.
    spark = feed.services.spark
    (newest, _) = own_snapshots(Jvm(spark), feed.stream.table)
    result = BatchResult(newest.commit, newest.rows, 0, 0, newest.committed_at, 0)
    commit_log.log_commits(spark, lambda: [(feed.stream, result)], again=True)
    assert [row[0] for row in logged(feed)] == [0, 1, 2]


@pytest.mark.nightly
def test_all_new_tables_are_named_in_one_commit_of_the_log(new_feed: Callable[[], Feed]) -> None:
    feeds = [new_feed() for _ in range(3)]
    services, streams = feeds[0].services, [feed.stream for feed in feeds]
    for feed in feeds:
        feed.register(ORDER)
    tables.create_shared(services)
    first_snapshot(Jvm(services.spark), commit_log.TABLE)

    def commits() -> int:
        return services.spark.table(f"{LOG}.snapshots").count()

    before = commits()

    made = tables.create_tables(services, streams)
    again = tables.create_tables(services, streams)

    assert (made, again) == ([stream.table for stream in streams], [])
    named = [row[:2] for feed in feeds for row in logged(feed)]
    assert named == [(0, KIND)] * 3
    assert commits() - before == 1
