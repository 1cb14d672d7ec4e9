"""Resume a stream after a decision of the operator: expired records, or a recreated topic.

Both are commits without rows, so that the table remains the checkpoint: one covers the offsets
that are accepted as lost, the other has the id and the start offsets of the new topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind
from spark_ingest.commits.resume import Position, position_of, topic_recreated
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.connect.broker import Topic
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.side_commit import commit_beside


@dataclass(frozen=True)
class Recovery:
    """A decision that would resume a stream.

    Attributes:
        topic: The current topic.
        gaps: By partition, the range ``(first, end)`` of offsets to accept as lost; empty for a
            recreated topic.
        previous: Id of the topic that the table was filled from; None if it is the current one.
        losses: Messages about the data loss.
    """

    stream: Stream
    topic: Topic
    gaps: Mapping[int, tuple[int, int]]
    previous: str | None
    losses: tuple[str, ...]


def find_gap(services: Services, stream: Stream) -> Recovery | None:
    """The offsets that expired before they were read; None if there are none.

    Raises:
        MillraceError: The topic was recreated.
    """
    here = _position(services, stream)
    if here is None:
        return None
    topic = services.broker.existing_topic(stream.topic, stream.name)
    if here.topic_id != topic.id:
        raise topic_recreated(stream, str(here.topic_id), topic.id)
    gaps = _gaps(here, services.broker.first_offsets(topic))
    if not gaps:
        return None
    losses = tuple(
        f"{topic.name}-{p}: {end - first:,} offsets, {first} to {end - 1}, which the broker has "
        "deleted"
        for p, (first, end) in gaps.items()
    )
    return Recovery(stream, topic, gaps, None, losses)


def find_new_topic(services: Services, stream: Stream) -> Recovery | None:
    """The recreated topic of a stream; None if its topic is the one of the table."""
    here = _position(services, stream)
    if here is None:
        return None
    topic = services.broker.existing_topic(stream.topic, stream.name)
    if here.topic_id == topic.id:
        return None
    losses = tuple(
        f"{topic.name}-{p}: all records of the topic with id {here.topic_id} from offset "
        f"{offset} on"
        for p, offset in sorted(here.offsets.items())
    )
    return Recovery(stream, topic, {}, here.topic_id, losses)


def accept(services: Services, recovery: Recovery) -> Commit | None:
    """Commit the decision; the stream may be running.

    Returns None if it is no longer needed.

    Raises:
        CommitRefused: The stream committed first at each attempt.
    """
    spark, stream, began = services.spark, recovery.stream, datetime.now(UTC)
    uuid = uuid_of(Jvm(spark), stream.table)
    oldest = services.broker.first_offsets(recovery.topic)

    def make(here: Position) -> tuple[DataFrame, Commit] | None:
        commit = _commit(recovery, here, oldest)
        if commit is None:
            return None
        return spark.table(f"{CATALOG}.{stream.table}").limit(0), commit

    if recovery.previous is not None:
        # Uncommitted rows of a batch that can no longer be repeated from the old topic.
        here = position_of(spark, stream)
        old = Topic(stream.topic, recovery.previous, tuple(here.offsets))
        batches, _ = quarantine_table.uncommitted(spark, old, here.offsets)
        quarantine_table.remove_uncommitted(spark, old, here.offsets, batches)
    commit = commit_beside(spark, stream, uuid, make)
    if commit is not None:
        commit_log.log_commit(spark, stream, BatchResult(commit, 0, 0, 0, began, 0))
    return commit


def _commit(recovery: Recovery, here: Position, oldest: Mapping[int, int]) -> Commit | None:
    """The commit for the decision at the table's position; None if it is no longer needed."""
    number, topic_id = here.commit_id + 1, recovery.topic.id
    if recovery.previous is not None:
        if here.topic_id != recovery.previous:
            return None
        return Commit(number, topic_id, oldest, oldest, CommitKind.NEW_TOPIC)
    # Retention continues: accept no further offsets as lost than were confirmed.
    gaps = {p: gap for p, gap in _gaps(here, oldest).items() if p in recovery.gaps}
    ends = {p: min(end, recovery.gaps[p][1]) for p, (_, end) in gaps.items()}
    starts = {p: first for p, (first, _) in gaps.items() if first < ends[p]}
    if here.topic_id != topic_id or not starts:
        return None
    ends = {p: ends[p] for p in starts}
    return Commit(number, topic_id, starts, ends, CommitKind.GAP, resume={**here.offsets, **ends})


def _position(services: Services, stream: Stream) -> Position | None:
    """The position of a table; None if it does not exist or has no commit."""
    if not bronze.exists(services.spark, stream.table):
        return None
    here = position_of(services.spark, stream)
    return here if here.topic_id is not None else None


def _gaps(here: Position, oldest: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    return {
        p: (offset, oldest[p])
        for p, offset in sorted(here.offsets.items())
        if offset < oldest.get(p, 0)
    }
