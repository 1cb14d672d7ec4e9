"""Own commits of a bronze table, from snapshot summaries, and the committed offset ranges.

Bronze tables have other snapshots as well: of maintenance, and of writers that took them over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Any

from spark_ingest.commits.offsets import Span, merged
from spark_ingest.errors import CommitRefused
from spark_ingest.lake.jvm import Jvm

SUMMARY_PREFIX = "millrace."
COMMIT_ID = f"{SUMMARY_PREFIX}commit-id"


class CommitKind(StrEnum):
    """The origin of a commit.

    Attributes:
        STREAM: A batch of the stream, with the next offsets.
        BACKFILL: Offsets before the stream's first ones.
        REPLAY: Quarantined records at their original positions; no offsets.
        GAP: No rows: offsets whose records are lost.
        NEW_TOPIC: No rows: the stream resumes with a recreated topic.
    """

    STREAM = "stream"
    BACKFILL = "backfill"
    REPLAY = "replay"
    GAP = "gap"
    NEW_TOPIC = "new_topic"


@dataclass(frozen=True)
class Commit:
    """One own commit of a bronze table, as its snapshot's summary describes it.

    Attributes:
        id: 1, 2, 3…, one for each Iceberg commit of the stream.
        topic_id: Kafka's UUID of the topic.
        starts: Start offset by partition, inclusive.
        ends: End offset by partition, exclusive.
        kind: Its origin.
        resume: Offset by partition at which the stream resumes, for a commit with offsets other
            than the stream's next ones; None if it resumes at ``ends``.
    """

    id: int
    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    kind: CommitKind = CommitKind.STREAM
    resume: Mapping[int, int] | None = None

    @property
    def position(self) -> dict[int, int]:
        """The stream's next offset by partition."""
        return dict(self.ends if self.resume is None else self.resume)

    @property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The committed offsets by partition: the first, inclusive, and the end, exclusive."""
        return {p: (self.starts.get(p, 0), end) for p, end in self.ends.items()}

    def summary(self) -> dict[str, str]:
        """The properties of the commit in its snapshot's summary."""
        summary = {
            COMMIT_ID: str(self.id),
            "millrace.kind": self.kind,
            "millrace.topic-id": self.topic_id,
            "millrace.start-offsets": json.dumps(dict(self.starts)),
            "millrace.end-offsets": json.dumps(dict(self.ends)),
        }
        if self.resume is not None:
            summary["millrace.resume-offsets"] = json.dumps(dict(self.resume))
        return summary


@dataclass(frozen=True)
class OwnSnapshot:
    """A snapshot with an own commit, and the number of rows that it added."""

    commit: Commit
    rows: int
    committed_at: datetime


def own_snapshots(jvm: Jvm, table: str, after: int = 0) -> list[OwnSnapshot]:
    """The own commits on ``main`` with a commit id above ``after``, newest first."""
    found = _from_newest(jvm.iceberg_table(table))
    return list(takewhile(lambda own: own.commit.id > after, found))


def newest_own_snapshot(jvm: Jvm, table: str) -> OwnSnapshot | None:
    """The newest own commit on ``main``; None if no snapshot has one."""
    return next(_from_newest(jvm.iceberg_table(table)), None)


def check_number(iceberg: Any, number: int | str | None) -> None:
    """Refuse to publish a commit whose id is not the successor of the newest on ``main``.

    A duplicate id would hide rows: dbt reads new rows by it, and the log has one row per id. If
    own snapshots have expired, its parent snapshot decides. A snapshot that is no own commit has
    no ``number``, and passes.

    Raises:
        CommitRefused: Others have committed since the id was chosen.
    """
    newest = next(_from_newest(iceberg), None)
    if number is None or newest is None or int(number) == newest.commit.id + 1:
        return
    raise CommitRefused(
        f"{iceberg.name()} changed concurrently: its newest commit is {newest.commit.id}, "
        f"and {number} cannot follow"
    )


def _from_newest(iceberg: Any) -> Iterator[OwnSnapshot]:
    snapshot = iceberg.currentSnapshot()
    while snapshot is not None:
        summary = snapshot.summary()
        if summary.get(COMMIT_ID) is not None:
            resume = summary.get("millrace.resume-offsets")
            commit = Commit(
                id=int(summary.get(COMMIT_ID)),
                topic_id=summary.get("millrace.topic-id"),
                starts=_offsets(summary.get("millrace.start-offsets")),
                ends=_offsets(summary.get("millrace.end-offsets")),
                kind=CommitKind(summary.get("millrace.kind") or CommitKind.STREAM),
                resume=_offsets(resume) if resume is not None else None,
            )
            at = datetime.fromtimestamp(snapshot.timestampMillis() / 1000, tz=UTC)
            yield OwnSnapshot(commit, int(summary.get("added-records") or 0), at)
        parent = snapshot.parentId()
        snapshot = iceberg.snapshot(parent) if parent is not None else None


# Kinds that advance the stream's position.
FORWARD = (CommitKind.STREAM, CommitKind.GAP, CommitKind.NEW_TOPIC)


@dataclass(frozen=True)
class Committed:
    """The committed offsets of a topic.

    Attributes:
        ranges: By partition, the range from the first to the last offset that the stream
            committed, including accepted gaps.
        last: The newest commit id of the table; 0 if there is none.
        backfilled: By partition, the ranges of backfills.
        given_up: By partition, the ranges within ``ranges`` whose loss was accepted.
    """

    ranges: Mapping[int, Span]
    last: int
    backfilled: Mapping[int, tuple[Span, ...]]
    given_up: Mapping[int, tuple[Span, ...]]

    def spans(self) -> dict[int, tuple[Span, ...]]:
        """By partition, all committed ranges, in order and without overlaps."""
        parts = self.ranges.keys() | self.backfilled.keys()
        found: dict[int, tuple[Span, ...]] = {}
        for p in sorted(parts):
            own = [self.ranges[p]] if p in self.ranges else []
            found[p] = merged([*own, *self.backfilled.get(p, ())])
        return found


@dataclass(frozen=True)
class CommitOffsets:
    """The offset ranges of one commit.

    Attributes:
        kind: Its origin.
        offsets: Its ranges, by partition.
        empty: Number of its offsets without a record when it was read.
    """

    commit_id: int
    kind: CommitKind
    offsets: Mapping[int, Span]
    empty: int


@dataclass(frozen=True)
class BatchResult:
    """A published batch.

    Attributes:
        commit: The published commit.
        rows: Records written to bronze.
        quarantined: Records written to quarantine.
        value_bytes: Bytes of all values read.
        started_at: Start time; the records' ``_ingested_at``.
        seconds: Wall time.
        other_bytes: Bytes of all keys and headers read.
    """

    commit: Commit
    rows: int
    quarantined: int
    value_bytes: int
    started_at: datetime
    seconds: float
    other_bytes: int = 0

    @property
    def committed_at(self) -> datetime:
        """The time of its publication."""
        return self.started_at + timedelta(seconds=self.seconds)


def by_topic(rows: Sequence[tuple[Any, ...]]) -> dict[str, Committed]:
    """The committed offsets of each topic of a table, the newest topic first.

    ``rows`` are aggregated rows of the commit log: topic id, kind, partition, the commit id if
    rows are per commit, first offset, end offset, newest commit.
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


def _offsets(text: str) -> dict[int, int]:
    return {int(partition): offset for partition, offset in json.loads(text).items()}
