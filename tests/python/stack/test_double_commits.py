"""A commit id that is there twice in a lake is named by `verify`.

Fails when `verify` holds for a table in which two commits have one id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from spark_ingest.commits.resume import position_of
from spark_ingest.quarantine.choice import Choice
from spark_ingest.quarantine.replay import replay
from tests.python.stack.conftest import ORDER, Feed, orders
from tests.python.stack.test_quarantine import TAGGED, ingest_without, tagged
from tests.python.stack.test_recover import forget_own_snapshots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_ingest.commits.resume import Position
    from spark_ingest.sources import Stream


def replay_with_the_newest_id(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that chose its id before the stream's commit and is published behind it.

    As by a program that compares no ids when it publishes.
    """

    def before(spark: SparkSession, stream: Stream) -> Position:
        here = position_of(spark, stream)
        return replace(here, commit_id=here.commit_id - 1)

    with monkeypatch.context() as patch:
        patch.setattr("spark_ingest.streaming.side_commit.position_of", before)
        patch.setattr("spark_ingest.commits.branch.check_number", lambda *_: None)
        assert replay(feed.services, feed.stream, Choice()).landed == 1


@pytest.mark.nightly
def test_verify_names_a_commit_that_is_there_twice(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, coming = feed.register(ORDER), feed.register(TAGGED)
    feed.send(*orders(number, 0, 2), *tagged(coming, 7))
    ingest_without(feed, coming, monkeypatch)
    feed.send(*orders(number, 2, 3))
    feed.ingest()
    assert feed.command("verify").exit_code == 0
    replay_with_the_newest_id(feed, monkeypatch)
    forget_own_snapshots(feed)

    found = feed.command("verify")

    assert found.exit_code == 1
    assert f"{feed.stream.table} has commit 2 twice: " in found.stderr
    assert "1 rows of " in found.stderr
    assert "3 rows of " in found.stderr
    assert f"--select source:{feed.stream.name}+" in found.stderr
