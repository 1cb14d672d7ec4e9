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
