"""Which rows of a commit id keep it, and what the commit of the others took.

Fails when rows of two commits with one id are told apart wrongly.
"""

from __future__ import annotations

import pytest

from spark_ingest.lake.committed import CommitKind, Committed
from spark_ingest.operate.double_commits import (
    DoubleCommit,
    Logged,
    Rows,
    Taken,
    kept_of,
    taken_by,
)

OLD = Rows(1_000_000, 2, "topic", {0: (3, 7)})
LATE = Rows(2_000_000, 4, "topic", {0: (10, 14)})


def logged(
    kind: CommitKind,
    started: int | None = None,
    rows: int = 0,
    ranges: dict[int, tuple[int, int]] | None = None,
    topic_id: str = "topic",
) -> Logged:
    return Logged(kind, topic_id, started, rows, ranges or {})


@pytest.mark.parametrize(
    ("log", "kept"),
    [
        (logged(CommitKind.STREAM, started=2_000_000, ranges={0: (3, 7)}), LATE),
        (logged(CommitKind.STREAM, rows=2, ranges={0: (9, 14)}), LATE),
        (logged(CommitKind.STREAM, topic_id="other", ranges={0: (9, 14)}), OLD),
        (logged(CommitKind.REPLAY, rows=4), LATE),
        (None, OLD),
    ],
)
def test_the_rows_of_the_commit_that_the_log_has_keep_the_id(
    log: Logged | None, kept: Rows
) -> None:
    assert kept_of([OLD, LATE], log) == kept


def test_rows_between_the_streams_offsets_are_of_a_commit_of_the_stream() -> None:
    committed = Committed({0: (0, 20), 1: (0, 5)}, 9, {}, {})
    assert taken_by(LATE, committed) == Taken(CommitKind.STREAM, {0: (10, 14)})


def test_a_backfill_took_all_that_nobody_else_has_around_its_rows() -> None:
    between = Committed({0: (20, 30)}, 9, {0: ((0, 8),)}, {})
    assert taken_by(LATE, between) == Taken(CommitKind.BACKFILL, {0: (8, 20)})
    lowest = Committed({0: (20, 30)}, 9, {}, {})
    assert taken_by(LATE, lowest) == Taken(CommitKind.BACKFILL, {0: (10, 20)})
    alone = Committed({1: (20, 30)}, 9, {}, {})
    assert taken_by(LATE, alone) == Taken(CommitKind.BACKFILL, {0: (10, 14)})


def test_a_finding_names_each_commit() -> None:
    taken = Taken(CommitKind.REPLAY, {})
    assert str(DoubleCommit(3, OLD, CommitKind.STREAM, ((LATE, taken),))) == (
        "2 rows of 1970-01-01 00:00:01.000000 UTC (stream) and "
        "4 rows of 1970-01-01 00:00:02.000000 UTC (replay)"
    )
