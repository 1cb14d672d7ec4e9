"""What was committed of a topic, as offset ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_ingest.lease import CommitKind

Span = tuple[int, int]


@dataclass(frozen=True)
class Committed:
    """All that was committed of a topic.

    Attributes:
        ranges: By partition, the first offset that the stream ever committed and the one
            behind its last, gaps that were accepted included.
        last: The newest commit id of the table; 0 when there is none.
        backfilled: By partition, the ranges ``(first, end)`` that were committed beside it.
        given_up: By partition, the ranges within ``ranges`` whose records were given up.
    """

    ranges: Mapping[int, Span]
    last: int
    backfilled: Mapping[int, tuple[Span, ...]]
    given_up: Mapping[int, tuple[Span, ...]]

    def spans(self) -> dict[int, tuple[Span, ...]]:
        """By partition, all that was committed, in order and without overlaps."""
        parts = self.ranges.keys() | self.backfilled.keys()
        found: dict[int, tuple[Span, ...]] = {}
        for p in sorted(parts):
            own = [self.ranges[p]] if p in self.ranges else []
            found[p] = merged([*own, *self.backfilled.get(p, ())])
        return found


@dataclass(frozen=True)
class Taken:
    """What one commit took and what it found there.

    Attributes:
        commit_id: The commit.
        kind: Who made it and what for.
        offsets: Its ranges, by partition.
        empty: Offsets of it that held no record when Kafka delivered it.
    """

    commit_id: int
    kind: CommitKind
    offsets: Mapping[int, Span]
    empty: int


def merged(spans: Sequence[Span]) -> tuple[Span, ...]:
    """Ranges ``(first, end)`` in order; those that touch or overlap are one."""
    found: list[Span] = []
    for first, end in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((first, end))
    return tuple(found)


def size(ranges: Sequence[Span]) -> int:
    """Offsets in ranges."""
    return sum(end - first for first, end in ranges)


def overlap(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What ranges have in common with others; both in order and without overlaps."""
    found, at = [], 0
    for first, end in ranges:
        while at < len(others) and others[at][1] <= first:
            at += 1
        place = at
        while place < len(others) and others[place][0] < end:
            found.append((max(first, others[place][0]), min(end, others[place][1])))
            place += 1
    return found


def without(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """What is left of ranges without others; both in order and without overlaps."""
    found, at = [], 0
    for first, end in ranges:
        while at < len(others) and others[at][1] <= first:
            at += 1
        here, place = first, at
        while place < len(others) and others[place][0] < end:
            if others[place][0] > here:
                found.append((here, others[place][0]))
            here = max(here, others[place][1])
            place += 1
        if here < end:
            found.append((here, end))
    return found
