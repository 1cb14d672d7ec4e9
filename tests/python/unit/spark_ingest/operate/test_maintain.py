"""Which snapshots maintenance keeps, and how its options are read."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from pyspark.errors import PySparkException

from spark_ingest.cli.maintain import Format, _round
from spark_ingest.commits.branch import created_at
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.operate import maintain as module
from spark_ingest.operate.maintain import History, Maintained, Policy, Snapshot, Usage, _Maintenance

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


POLICY = Policy(timedelta(hours=1), 2**27, None)


def test_a_table_that_fails_leaves_the_others_maintained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def maintain(_spark: object, table: str, *_words: object) -> Maintained:
        if table == "bronze.b":
            raise MillraceError("bronze.b could not be maintained: no space left")
        usage = Usage(1, 0, 10, 1, 1, None)
        return Maintained(table, usage, usage, ())

    monkeypatch.setattr(module, "maintain", maintain)
    tables = ["bronze.a", "bronze.b", "bronze.c"]
    nothing = cast("Any", None)

    assert _round(nothing, tables, POLICY, False, Format.JSON, threading.Event())

    shown = capsys.readouterr()
    assert shown.err == "spark-ingest: bronze.b could not be maintained: no space left\n"
    assert '"bronze.a"' in shown.out
    assert '"bronze.c"' in shown.out
    assert not _round(nothing, tables[:1], POLICY, False, Format.JSON, threading.Event())


@pytest.mark.parametrize(
    ("said", "attempts", "advice"),
    [
        ("CommitFailedException: stale", 5, "while fewer writers are active"),
        ('UnsupportedFileSystemException: No FileSystem for scheme "s3"', 1, 'scheme "s3"'),
    ],
)
def test_only_conflicts_are_retried(
    monkeypatch: pytest.MonkeyPatch, said: str, attempts: int, advice: str
) -> None:
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    change = Mock(side_effect=PySparkException(said))
    work = _Maintenance(Mock(), "bronze.a", POLICY, dry_run=False)
    with pytest.raises(MillraceError, match=advice):
        work._attempt(change)
    assert change.call_count == attempts
