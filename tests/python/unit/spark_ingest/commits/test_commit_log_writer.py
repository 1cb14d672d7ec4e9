"""The commit log's rows: kept where they cannot be written, and nobody's keep another's waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from spark_ingest.commits import commit_log, commit_log_writer
from spark_ingest.commits.commit_log_writer import CommitLog
from spark_ingest.commits.committed import BatchResult, Commit
from spark_ingest.commits.lease import Lease
from spark_ingest.errors import LeaseLost
from spark_ingest.sources import IngestMeta, Stream


class Holder:
    """A lease that is held, lost, or cannot be asked."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.asked = 0

    def check(self) -> None:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble


class Written:
    """Stands for the log's table."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.rows: list[tuple[str, int]] = []
        self.again: list[bool] = []

    def log_commits(
        self,
        _spark: object,
        published: Callable[[], Sequence[tuple[Stream, BatchResult]]],
        *,
        again: bool = False,
    ) -> None:
        self.again.append(again)
        commits = published()
        if self.trouble is not None:
            raise self.trouble
        self.rows += [(stream.name, result.commit.id) for stream, result in commits]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    table = Written()
    monkeypatch.setattr(commit_log, "log_commits", table.log_commits)
    return table


@pytest.fixture
def reported() -> list[str]:
    return []


@pytest.fixture
def log(
    written: Written, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommitLog]:
    """A log that writes when it is flushed alone."""
    assert written.rows == []
    monkeypatch.setattr(commit_log_writer, "_SECONDS", 3600.0)
    made = CommitLog(cast("Any", None), reported.append)
    yield made
    made.close()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def stream(name: str) -> Stream:
    ingest = IngestMeta(topic=name)
    return Stream(name, f"bronze.{name}", "", {}, frozenset(), ingest)


def commit(number: int) -> BatchResult:
    return BatchResult(Commit(number, "id", {}, {}), 1, 0, 1, datetime.now(UTC), 0.1)


def test_rows_that_cannot_be_written_are_kept_and_written_with_care(
    log: CommitLog, written: Written
) -> None:
    lease = cast("Lease", Holder())
    log.add(lease, stream("a"), commit(1))
    written.trouble = OSError("the catalog is away")
    with pytest.raises(OSError, match="away"):
        log.flush()
    log.add(lease, stream("a"), commit(2))
    written.trouble = None
    log.flush()
    log.flush()
    assert written.rows == [("a", 1), ("a", 2)]
    # The first try may have been in all the same.
    assert written.again == [False, True]


def test_a_table_that_cannot_be_asked_keeps_only_its_own_rows_waiting(
    log: CommitLog, written: Written
) -> None:
    broken, good = Holder(), Holder()
    broken.trouble = OSError("no storage")
    log.add(cast("Lease", broken), stream("a"), commit(1))
    log.add(cast("Lease", good), stream("b"), commit(1))
    log.flush(stream("b"))
    assert written.rows == [("b", 1)]
    with pytest.raises(OSError, match="no storage"):
        log.flush(stream("a"))
    broken.trouble = None
    log.flush(stream("a"))
    assert written.rows == [("b", 1), ("a", 1)]


def test_a_lease_is_asked_once_for_all_its_rows(log: CommitLog, written: Written) -> None:
    holder = Holder()
    for number in range(1, 6):
        log.add(cast("Lease", holder), stream("a"), commit(number))
    log.flush()
    assert (holder.asked, len(written.rows)) == (1, 5)


def test_rows_of_a_table_that_was_taken_over_are_the_successors(
    log: CommitLog, written: Written
) -> None:
    lost = Holder()
    lost.trouble = LeaseLost("taken over")
    log.add(cast("Lease", lost), stream("a"), commit(1))
    log.flush()
    lost.trouble = None
    log.flush()
    assert written.rows == []


def test_writing_in_the_background_outlives_an_error_and_shows_it_once(
    written: Written, reported: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_log_writer, "_SECONDS", 0.01)
    log = CommitLog(cast("Any", None), reported.append)
    try:
        written.trouble = OSError("disk full")
        log.add(cast("Lease", Holder()), stream("a"), commit(1))
        until(lambda: len(written.again) > 3)
        written.trouble = None
        until(lambda: written.rows == [("a", 1)])
    finally:
        log.close()
    assert reported == ["the commit log is behind and will catch up: disk full"]
