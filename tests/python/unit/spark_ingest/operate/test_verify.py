"""What the commit log shows of offsets that no broker can be asked about."""

from __future__ import annotations

from spark_ingest.commits.committed import CommitKind, CommitOffsets
from spark_ingest.commits.offsets import Span, merged
from spark_ingest.operate.verify import lost_by_log


def took(commit_id: int, empty: int, **offsets: Span) -> CommitOffsets:
    ranges = {int(name.removeprefix("p")): span for name, span in offsets.items()}
    return CommitOffsets(commit_id, CommitKind.STREAM, ranges, empty)


def test_ranges_that_touch_are_one() -> None:
    assert merged([(5, 7), (0, 2), (2, 3), (6, 9)]) == ((0, 3), (5, 9))


def test_a_commit_explains_as_many_offsets_as_held_no_record() -> None:
    commits = [took(1, 2, p0=(0, 5), p1=(0, 3)), took(2, 0, p0=(5, 9))]
    assert lost_by_log(commits, {0: [(1, 2)], 1: [(2, 3)]}, {}) == {}


def test_a_commit_that_lacks_more_has_lost_some_of_them() -> None:
    commits = [took(1, 1, p0=(0, 5)), took(2, 4, p0=(5, 9))]
    lost = lost_by_log(commits, {0: [(1, 2), (4, 6)]}, {})
    # Offsets 1 and 4 are of commit 1, which had one empty; 5 is of commit 2.
    assert lost == {0: [(1, 2), (4, 5)]}


def test_what_the_broker_says_is_empty_explains_nothing_else() -> None:
    commits = [took(1, 1, p0=(0, 5))]
    assert lost_by_log(commits, {0: [(1, 2)]}, {0: [(3, 4)]}) == {0: [(1, 2)]}


def test_offsets_of_no_commit_are_not_explained() -> None:
    commits = [took(1, 9, p0=(2, 4)), took(2, 9, p0=(6, 8))]
    assert lost_by_log(commits, {0: [(0, 9)]}, {}) == {0: [(0, 2), (4, 6), (8, 9)]}
