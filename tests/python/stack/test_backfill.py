"""What was before a stream's beginning is landed beside it, once each.

Fails when a backfill loses or doubles a record, killed or beside a running stream.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from spark_ingest.commits.committed import CommitKind, own_snapshots
from spark_ingest.errors import CommitRefused, MillraceError
from spark_ingest.lake.jvm import Jvm
from spark_ingest.operate.backfill import BackfillSettings, backfill
from spark_ingest.streaming import run, tables
from spark_ingest.streaming.side_commit import SideBranch
from spark_ingest.streaming.staged_batch import Staged
from tests.python.stack.conftest import ORDER, Feed, orders, proofs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spark_ingest.commits.committed import Commit

SETTINGS = BackfillSettings(max_records=12, unknown_wait=0.1)


def begun_later(feed: Feed) -> int:
    """A stream that began behind 20 records, two of them bad; the schema's id."""
    number = feed.register(ORDER)
    feed.send(*orders(number, 0, 9), b"junk")
    feed.send(b"junk", *orders(number, 10, 9), partition=1)
    # Records have their time in milliseconds: none has the one that this falls into.
    time.sleep(0.01)
    since = datetime.now(UTC)
    time.sleep(0.01)
    feed.send(*orders(number, 20, 1))
    feed.send(*orders(number, 21, 1), partition=1)
    tables.create_tables(feed.services, [feed.stream])
    settings = run.RunSettings(None, 100, 0.1, begin=since)
    run.run_streams(feed.services, [feed.stream], settings, threading.Event())
    assert feed.offsets() == [(0, 10), (1, 10)]
    return number


def filled_back(feed: Feed) -> int:
    floor = {0: 0, 1: 0}
    return backfill(feed.services, feed.stream, floor, SETTINGS, threading.Event())


@pytest.mark.nightly
def test_a_backfill_that_was_killed_goes_on_beside_a_faster_stream(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = begun_later(feed)
    append_quarantine, stage_files = Staged.append_quarantine, SideBranch.stage_files
    appended, refused = [], threading.Event()

    def kill_the_second(staged: Staged, began: datetime) -> None:
        append_quarantine(staged, began)
        appended.append(staged.bad)
        if len(appended) == 2:
            raise KeyboardInterrupt

    def behind_the_stream(branch: SideBranch, files: Sequence[Any], commit: Commit) -> None:
        if not refused.is_set():
            refused.set()
            feed.send(*orders(number, 22, 1))
            feed.ingest()
        stage_files(branch, files, commit)

    # Killed with the first chunk committed and the second one's bad record quarantined.
    with monkeypatch.context() as patch:
        patch.setattr(Staged, "append_quarantine", kill_the_second)
        with pytest.raises(KeyboardInterrupt):
            filled_back(feed)
    assert appended == [1, 1]
    assert len(feed.quarantined()) == 2
    assert all(proof.holds for proof in proofs(feed))
    with monkeypatch.context() as patch:
        patch.setattr(SideBranch, "stage_files", behind_the_stream)
        assert filled_back(feed) == 8

    assert feed.offsets() == [(0, n) for n in (*range(9), 10, 11)] + [(1, n) for n in range(1, 11)]
    assert feed.quarantined() == [(0, "not_framed"), (9, "not_framed")]
    found = proofs(feed)
    assert all(proof.holds for proof in found)
    assert [(proof.first, proof.end) for proof in found] == [(0, 12), (0, 11)]
    commits = own_snapshots(Jvm(feed.services.spark), feed.stream.table)
    assert [(own.commit.id, own.commit.kind) for own in reversed(commits)] == [
        (1, CommitKind.STREAM),
        (2, CommitKind.STREAM),
        (3, CommitKind.BACKFILL),
        (4, CommitKind.STREAM),
        (5, CommitKind.BACKFILL),
    ]
    assert commits[0].commit.position == {0: 12, 1: 11}
    counts = feed.log().select("commit_id", "row_count", "quarantined_count").collect()
    # The first is the beginning itself.
    assert [tuple(row) for row in counts] == [
        (1, 0, 0), (2, 2, 0), (3, 11, 1), (4, 1, 0), (5, 7, 1),
    ]  # fmt: skip
    # Nothing is left; the stream goes on where it was.
    assert filled_back(feed) == 0
    feed.send(*orders(number, 23, 1))
    (batch,) = feed.ingest()
    assert (batch.commit_id, batch.rows) == (6, 1)


@pytest.mark.long
def test_a_second_backfill_of_the_same_records_is_refused(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun_later(feed)
    entered: list[int] = []
    stage_files = SideBranch.stage_files

    def behind_another(branch: SideBranch, files: Sequence[Any], commit: Commit) -> None:
        if not entered:
            entered.append(filled_back_by_another())
        stage_files(branch, files, commit)

    def filled_back_by_another() -> int:
        entered.append(0)
        return filled_back(feed)

    monkeypatch.setattr(SideBranch, "stage_files", behind_another)
    with pytest.raises(CommitRefused, match="another backfill landed the same records"):
        filled_back(feed)
    assert entered == [0, 20]
    assert len(feed.offsets()) == 20
    assert feed.quarantined() == [(0, "not_framed"), (9, "not_framed")]
    assert all(proof.holds for proof in proofs(feed))


def test_there_is_nothing_before_a_stream_that_has_not_begun(feed: Feed) -> None:
    feed.send(*orders(feed.register(ORDER), 0, 1))
    tables.create_tables(feed.services, [feed.stream])
    with pytest.raises(MillraceError, match="has no commit yet"):
        filled_back(feed)
