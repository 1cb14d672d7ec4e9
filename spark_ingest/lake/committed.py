"""What was committed of a topic, as offset ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from spark_ingest.lake.lease import Commit, CommitKind
from spark_ingest.lake.offsets import Span, merged

# Kinds that move the stream forward; the others take offsets elsewhere, or none.
FORWARD = (CommitKind.STREAM, CommitKind.GAP, CommitKind.NEW_TOPIC)


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


@dataclass(frozen=True)
class BatchResult:
    """What a batch did.

    Attributes:
        commit: What was published.
        rows: Records in bronze.
        quarantined: Records in quarantine.
        value_bytes: Bytes of all values read.
        started_at: When it began; the records' ``_ingested_at``.
        seconds: Wall time.
        key_bytes: Bytes of all keys read.
    """

    commit: Commit
    rows: int
    quarantined: int
    value_bytes: int
    started_at: datetime
    seconds: float
    key_bytes: int = 0

    @property
    def committed_at(self) -> datetime:
        """When it was visible."""
        return self.started_at + timedelta(seconds=self.seconds)


def by_topic(rows: Sequence[tuple[Any, ...]]) -> dict[str, Committed]:
    """What was committed of each topic of a table, the newest topic first.

    Args:
        rows: Of the commit log, put together: topic id, kind, partition, the commit where each
            has a row of its own, first offset, end offset, newest commit.
    """
    last = max((row[6] for row in rows), default=0)
    found: dict[str, Committed] = {}
    for topic_id, *_ in sorted(rows, key=lambda row: -int(row[6])):
        if topic_id in found:
            continue
        forward: dict[int, list[Span]] = {}
        backfilled: dict[int, list[Span]] = {}
        given_up: dict[int, list[Span]] = {}
        for of, kind, partition, _, first, end, _ in rows:
            if of != topic_id or partition is None:
                continue
            if kind in FORWARD:
                forward.setdefault(partition, []).append((first, end))
            if kind == CommitKind.GAP:
                given_up.setdefault(partition, []).append((first, end))
            if kind == CommitKind.BACKFILL and end > first:
                backfilled.setdefault(partition, []).append((first, end))
        found[topic_id] = Committed(
            {p: (min(s)[0], max(e for _, e in s)) for p, s in forward.items()},
            last,
            {p: merged(s) for p, s in backfilled.items()},
            {p: merged(s) for p, s in given_up.items()},
        )
    return found
