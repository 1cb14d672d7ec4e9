"""Which snapshots maintenance keeps, and how its options are read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spark_ingest.commits.branch import created_at
from spark_ingest.errors import ConfigurationError
from spark_ingest.operate.maintain import History, Policy, Snapshot

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def history(*commit_ids: int | None) -> History:
    """A line of snapshots 1, 2, 3…, a minute apart until noon, with these own commits."""
    count = len(commit_ids)
    return History(
        {
            n: Snapshot(n - 1 or None, NOON - timedelta(minutes=count - n), commit_id)
            for n, commit_id in enumerate(commit_ids, start=1)
        },
        branches={"main": count},
    )


@pytest.mark.parametrize(
    ("commit_ids", "logged", "needed"),
    [
        ((), set(), 1),
        ((1, 2, 3), {1, 2, 3}, 1),
        # Compacted since: the stream finds its offsets in the snapshot before.
        ((1, 2, None, None), {1, 2}, 3),
        # The log lacks 2 and 3: their rows are made from their snapshots.
        ((1, 2, 3, None), {1}, 3),
        # A commit in the middle was killed before it was logged.
        ((1, 2, 3, 4), {1, 3, 4}, 3),
        ((None, None), set(), 1),
    ],
)
def test_the_newest_own_snapshot_and_those_not_in_the_log_are_needed(
    commit_ids: tuple[int | None, ...], logged: set[int], needed: int
) -> None:
    assert history(*commit_ids).needed(logged) == needed


def test_what_is_old_expires_but_the_newest_of_each_branch_and_tags() -> None:
    line = history(1, 2, 3, 4, 5)
    forked = History(line.snapshots, {"main": 5, "writer_x": 3}, tags={"kept": 1})
    assert forked.expired(NOON + timedelta(hours=1), least=1) == [2, 4]
    assert forked.expired(NOON + timedelta(hours=1), least=2) == []
    assert line.expired(NOON - timedelta(minutes=2), least=1) == [1, 2]


def test_only_branches_that_were_made_for_one_commit_have_their_time() -> None:
    assert created_at("side_1767268800_0123456789ab") == NOON
    assert created_at("writer_0123456789ab") is None
    assert created_at("main") is None


def test_orphans_of_today_are_not_looked_for() -> None:
    with pytest.raises(ConfigurationError, match="give 1d or more"):
        Policy(timedelta(hours=1), 2**27, timedelta(hours=23))
