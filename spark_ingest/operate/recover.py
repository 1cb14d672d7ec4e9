"""What a person decides where a stream cannot go on by itself: records that expired, a new topic.

Both are commits of no rows beside the stream, so that the table stays the checkpoint: one
takes the offsets that are given up, the other names the new topic and where it begins.
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
    """What would make a stream go on.

    Attributes:
        topic: Its topic, as it is now.
        gaps: By partition, the range ``(first, end)`` of offsets that would be given up; none
            where the stream would go on with a new topic.
        earlier: The topic that the table was filled from, by id; None where it is the same.
        gives_up: What that means, for people.
    """

    stream: Stream
    topic: Topic
    gaps: Mapping[int, tuple[int, int]]
    earlier: str | None
    gives_up: tuple[str, ...]


def find_gap(services: Services, stream: Stream) -> Recovery | None:
    """The records that expired before they were read; None where there are none.

    Raises:
        MillraceError: The topic is another one than the table was filled from.
    """
    here = _standing(services, stream)
    if here is None:
        return None
    topic = services.broker.existing_topic(stream.topic, stream.name)
    if here.topic_id != topic.id:
        raise topic_recreated(stream, str(here.topic_id), topic.id)
    gaps = _gaps(here, services.broker.first_offsets(topic))
    if not gaps:
        return None
    losses = tuple(
        f"{topic.name}-{p}: offsets {first} to {end - 1}, {end - first:,} of them, which the "
        "broker has no more"
        for p, (first, end) in gaps.items()
    )
    return Recovery(stream, topic, gaps, None, losses)


def find_new_topic(services: Services, stream: Stream) -> Recovery | None:
    """The topic that stands where the table's was; None where it is the same."""
    here = _standing(services, stream)
    if here is None:
        return None
    topic = services.broker.existing_topic(stream.topic, stream.name)
    if here.topic_id == topic.id:
        return None
    losses = tuple(
        f"{topic.name}-{p}: whatever the topic with the id {here.topic_id} had from offset "
        f"{offset} on"
        for p, offset in sorted(here.offsets.items())
    )
    return Recovery(stream, topic, {}, here.topic_id, losses)


def accept(services: Services, recovery: Recovery) -> Commit | None:
    """Commit it, beside whoever writes the table.

    Returns None where it is not needed any more.

    Raises:
        CommitRefused: The table's stream was faster each time.
    """
    spark, stream, began = services.spark, recovery.stream, datetime.now(UTC)
    uuid = uuid_of(Jvm(spark), stream.table)
    oldest = services.broker.first_offsets(recovery.topic)

    def make(here: Position) -> tuple[DataFrame, Commit] | None:
        commit = _commit(recovery, here, oldest)
        if commit is None:
            return None
        return spark.table(f"{CATALOG}.{stream.table}").limit(0), commit

    if recovery.earlier is not None:
        # What a batch quarantined that the old topic can never repeat.
        here = position_of(spark, stream)
        old = Topic(stream.topic, recovery.earlier, tuple(here.offsets))
        batches, _ = quarantine_table.uncommitted(spark, old, here.offsets)
        quarantine_table.remove_uncommitted(spark, old, here.offsets, batches)
    commit = commit_beside(spark, stream, uuid, make)
    if commit is not None:
        commit_log.log_commit(spark, stream, BatchResult(commit, 0, 0, 0, began, 0))
    return commit


def _commit(recovery: Recovery, here: Position, oldest: Mapping[int, int]) -> Commit | None:
    """The commit that does it from where the table stands; None where nothing is to do."""
    number, topic_id = here.commit_id + 1, recovery.topic.id
    if recovery.earlier is not None:
        if here.topic_id != recovery.earlier:
            return None
        return Commit(number, topic_id, oldest, oldest, CommitKind.NEW_TOPIC)
    # Retention goes on: no more is given up than the person agreed to.
    gaps = {p: gap for p, gap in _gaps(here, oldest).items() if p in recovery.gaps}
    ends = {p: min(end, recovery.gaps[p][1]) for p, (_, end) in gaps.items()}
    starts = {p: first for p, (first, _) in gaps.items() if first < ends[p]}
    if here.topic_id != topic_id or not starts:
        return None
    ends = {p: ends[p] for p in starts}
    return Commit(number, topic_id, starts, ends, CommitKind.GAP, resume={**here.offsets, **ends})


def _standing(services: Services, stream: Stream) -> Position | None:
    """Where a table stands; None for one that is not there or was never filled."""
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
