"""A table whose older metadata was registered again: the log follows it, and nothing is twice.

Fails when a table that was rolled back gets a row twice, or keeps the log of what it lost.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.quarantine.choice import Choice
from spark_ingest.quarantine.replay import replay
from tests.python.stack.conftest import ORDER, Feed, orders, proofs
from tests.python.stack.test_quarantine import TAGGED, ingest_without, states, tagged


def books(feed: Feed) -> list[tuple[Any, ...]]:
    """Commit id, rows and quarantined of the feed's commits in the log."""
    rows = feed.log().select("commit_id", "row_count", "quarantined_count")
    return [tuple(row) for row in rows.collect()]


def since(feed: Feed) -> datetime:
    """Since when the log says that the feed's table stands there as it does."""
    log = feed.services.spark.table(f"{CATALOG}.{commit_log.TABLE}")
    (row,) = log.where(
        (F.col("table_name") == feed.stream.table) & (F.col("kind") == "table")
    ).collect()
    moment: datetime = row["committed_at"]
    return moment


@pytest.mark.long
def test_a_table_that_was_rolled_back_takes_its_log_and_its_replays_along(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = feed.services.spark
    number, coming = feed.register(ORDER), feed.register(TAGGED)
    feed.send(*orders(number, 0, 2), b"junk", *tagged(coming, 7))
    ingest_without(feed, coming, monkeypatch)
    operations = Jvm(spark).iceberg_table(feed.stream.table).operations()
    older = operations.current().metadataFileLocation()
    assert sum(replay(feed.services, feed.stream, Choice()).remaining.values()) == 1
    feed.send(*orders(number, 2, 1), b"more junk")
    feed.ingest()
    feed.send(*orders(number, 3, 1))
    feed.ingest()
    assert books(feed) == [(1, 2, 2), (2, 1, -1), (3, 1, 1), (4, 1, 0)]
    assert feed.reports.notes == []
    spark.sql(f"drop table {feed.table}")
    spark.sql(
        f"call lake.system.register_table(table => '{feed.stream.table}', "
        f"metadata_file => '{older}')"
    )
    before = since(feed)
    # Until the stream starts, the log shows what is gone.
    assert not all(proof.holds for proof in proofs(feed))

    feed.ingest()

    (note,) = feed.reports.notes
    assert "was rolled back to commit 1: its commits 2 to 4 were removed" in note
    assert books(feed) == [(1, 2, 2), (2, 2, 1)]
    # By which dbt knows, however far the table has come when it looks.
    assert since(feed) > before
    # What was replayed is open again.
    assert [state for *_, state in states(feed)] == ["open"] * 3
    held = [(p.bronze, p.quarantined, p.holds) for p in proofs(feed)]
    assert held == [(4, 3, True), (0, 0, True)]
