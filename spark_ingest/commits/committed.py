"""What was committed: each own commit of a table by its snapshot's summary, a topic by ranges.

Bronze tables have other snapshots as well: of maintenance, of who took the table over.
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
    """Who makes a commit, and what for.

    Attributes:
        STREAM: The stream, of the offsets that come next.
        BACKFILL: Of offsets before the stream's first ones.
        REPLAY: Of quarantined records, at their own positions: takes no offsets.
        GAP: Of nothing: offsets whose records are given up.
        NEW_TOPIC: Of nothing: the stream goes on with another topic of the same name.
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
        starts: First offset of the commit, by partition.
        ends: Offset behind the last one of the commit, by partition.
        kind: Who made it and what for.
        resume: Where the stream goes on, by partition, for a commit that took other offsets
            than the stream's next ones; None where it goes on at ``ends``.
    """

    id: int
    topic_id: str
    starts: Mapping[int, int]
    ends: Mapping[int, int]
    kind: CommitKind = CommitKind.STREAM
    resume: Mapping[int, int] | None = None

    @property
    def position(self) -> dict[int, int]:
        """By partition, the offset that the stream reads next."""
        return dict(self.ends if self.resume is None else self.resume)

    def summary(self) -> dict[str, str]:
        """What the commit's snapshot says of it."""
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
    """A snapshot that carries an own commit.

    Attributes:
        commit: What it carries.
        rows: Records it added.
    """

    commit: Commit
    rows: int
    committed_at: datetime


def own_snapshots(jvm: Jvm, table: str, after: int = 0) -> list[OwnSnapshot]:
    """The own commits on ``main`` with a commit id above ``after``, newest first."""
    found = _from_newest(jvm.iceberg_table(table))
    return list(takewhile(lambda own: own.commit.id > after, found))


def newest_own_snapshot(jvm: Jvm, table: str) -> OwnSnapshot | None:
    """The newest own commit on ``main``; None where no snapshot has one."""
    return next(_from_newest(jvm.iceberg_table(table)), None)


def check_number(iceberg: Any, staged: Any) -> None:
    """Refuse to publish a commit whose id is not the one behind the newest on ``main``.

    An id that is there twice would hide rows: dbt reads by it what is new, and the log has a row
    for each. Where own snapshots have expired, the snapshot that it was based on counts. A
    ``staged`` snapshot that is no own commit passes.

    Raises:
        CommitRefused: Others have committed since the id was chosen.
    """
    number = staged.summary().get(COMMIT_ID)
    newest = next(_from_newest(iceberg), None)
    if number is None or newest is None or int(number) == newest.commit.id + 1:
        return
    raise CommitRefused(
        f"{iceberg.name()} moved meanwhile: it has commit {newest.commit.id}, and {number} "
        "was to follow"
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
class CommitOffsets:
    """What one commit took and what it found there.

    Attributes:
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
        """When it was visible."""
        return self.started_at + timedelta(seconds=self.seconds)


def by_topic(rows: Sequence[tuple[Any, ...]]) -> dict[str, Committed]:
    """What was committed of each topic of a table, the newest topic first.

    ``rows`` are of the commit log, put together: topic id, kind, partition, the commit where
    each has a row of its own, first offset, end offset, newest commit.
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
