"""How long each change waited, by what was seen of the tables and by the rounds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.ingest.usage import percentile
from bench.ingest.watch import Seen

COMMIT_ID = "millrace.commit-id"


@dataclass(frozen=True)
class Change:
    """Changes of one commit of bronze that the database committed at one moment.

    Attributes:
        stream: dbt's name of their source.
        commit_id: Of bronze.
        at: When the database committed them, seconds since 1970.
        count: How many.
    """

    stream: str
    commit_id: int
    at: float
    count: int


@dataclass(frozen=True)
class Round:
    """A round of dbt, or an answer of a live view.

    Attributes:
        at: When it had committed, or the answer was there, seconds since 1970.
        seconds: What it took.
        read: Up to which commit of bronze, by source.
    """

    at: float
    seconds: float
    read: Mapping[str, int]


@dataclass(frozen=True)
class Waits:
    """Seconds from a change's commit in the database until it is there, for a share of them.

    Attributes:
        hundredths: Of each hundredth of the changes the longest, in order.
    """

    p50: float
    p95: float
    p99: float
    hundredths: list[float]


def visible(seen: Sequence[Seen]) -> dict[int, float]:
    """When each commit of a bronze table could be seen first.

    A look may find several commits at once: they are seen with the newest of them.
    """
    found: dict[int, float] = {}
    newest = 0
    for state in seen:
        commit_id = int(state.summary.get(COMMIT_ID, 0))
        for between in range(newest + 1, commit_id + 1):
            found[between] = state.at
        newest = max(newest, commit_id)
    return found


def to_bronze(changes: Sequence[Change], seen: Mapping[str, Mapping[int, float]]) -> Waits:
    """Of changes that are in bronze, by the moments at which its commits were seen."""
    return _waits([(seen[one.stream][one.commit_id], one) for one in changes])


def to_live(
    changes: Sequence[Change], seen: Mapping[str, Mapping[int, float]], answers: Sequence[Round]
) -> Waits:
    """Of changes in an answer of the live view that was asked for when they were in bronze.

    An answer takes as long then as the next that was asked for and has them.

    Raises:
        StopIteration: None has one of them.
    """
    ends = []
    for one in changes:
        there = seen[one.stream][one.commit_id]
        answer = next(
            each
            for each in answers
            if each.at - each.seconds >= there and each.read[one.stream] >= one.commit_id
        )
        ends.append((there + answer.seconds, one))
    return _waits(ends)


def to_current(changes: Sequence[Change], rounds: Sequence[Round]) -> Waits:
    """Of changes in the current state, by the round that read their commit first.

    Raises:
        IndexError: No round has read one of them.
    """
    ends = []
    for one in changes:
        read = [each.read.get(one.stream, 0) for each in rounds]
        ends.append((rounds[bisect_left(read, one.commit_id)].at, one))
    return _waits(ends)


def _waits(ends: Sequence[tuple[float, Change]]) -> Waits:
    ordered = sorted(waited for end, one in ends for waited in [end - one.at] * one.count)
    return Waits(
        p50=round(percentile(ordered, 0.5), 2),
        p95=round(percentile(ordered, 0.95), 2),
        p99=round(percentile(ordered, 0.99), 2),
        hundredths=[round(percentile(ordered, n / 100), 2) for n in range(1, 101)],
    )
