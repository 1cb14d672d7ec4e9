"""The table is the checkpoint: where a stream goes on, from its table alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log
from spark_ingest.commits.committed import CommitKind, newest_own_snapshot
from spark_ingest.commits.table_identity import Earlier
from spark_ingest.connect.broker import Begin, Topic
from spark_ingest.errors import MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services


@dataclass(frozen=True)
class Position:
    """Where a stream's table stands.

    Attributes:
        commit_id: The newest commit; 0 for a new table.
        offsets: By partition, the offset to read next.
        topic_id: Kafka's UUID of the topic that it was filled from; None for a new table.
    """

    commit_id: int
    offsets: dict[int, int]
    topic_id: str | None


def made_again(stream: Stream, then: str, now: str) -> MillraceError:
    """What to raise for a topic that is not the one the table was filled from."""
    return MillraceError(
        f"topic {stream.topic} was deleted and recreated since {stream.table} was filled "
        f"(topic id {then} then, {now} now), so offsets mean other records: give the new one a "
        "source and table of its own, or let this table go on with it: "
        f"`spark-ingest recover {stream.name} --new-topic`"
    )


def made_anew(stream: Stream, earlier: Earlier, topic: Topic, begins: Mapping[int, int]) -> str:
    """What to tell of a table that was recreated where another one stood.

    ``begins`` has the offset that the new table begins with, by partition.
    """
    which = f"table UUID {earlier.uuid}" if earlier.uuid else "older than table UUIDs"
    told = (
        f"{stream.name}: {stream.table} was recreated since commit {earlier.last} of an earlier "
        f"table ({which}): it begins at commit 1, with what the broker holds from there "
        f"on; the earlier one's commits stay in {commit_log.TABLE}; "
        "build the marts with `dbt build --full-refresh`"
    )
    if earlier.topic_id != topic.id:
        return f"{told}; all of it was of topic id {earlier.topic_id}, which is gone"
    lost = [
        f"{p}: {first} to {min(end, begins.get(p, end)) - 1}"
        for p, (first, end) in earlier.ranges.items()
        if first < min(end, begins.get(p, end))
    ]
    if lost:
        told += f"; offsets that it had and this one begins behind: {', '.join(lost)}"
    return told


def position(
    services: Services, stream: Stream, topic: Topic, begin: Begin = "earliest"
) -> Position:
    """Where a stream goes on, from its table alone.

    ``begin`` is where to begin when the table has no commit yet.

    Raises:
        MillraceError: The topic is another one than the table was filled from, or records
            expired before they were read.
    """
    found = standing(services.spark, stream)
    if found.topic_id not in (None, topic.id):
        raise made_again(stream, str(found.topic_id), topic.id)
    oldest, newest_offsets = (
        services.broker.first_offsets(topic),
        services.broker.end_offsets(topic),
    )
    first = oldest if found.commit_id else services.broker.begin_offsets(topic, begin)
    for partition in topic.partitions:
        if partition not in found.offsets:
            # Never read: a partition that was added begins with what the broker still has.
            found.offsets[partition] = first[partition]
        here = found.offsets[partition]
        if here < oldest[partition]:
            raise MillraceError(
                f"{topic.name}-{partition}: records {here} to {oldest[partition] - 1} expired "
                f"before they were read; {stream.table} would have a gap: lengthen the topic's "
                "retention.ms and run more often; to go on without them: "
                f"`spark-ingest recover {stream.name} --accept-gap`"
            )
        if here > newest_offsets[partition]:
            raise MillraceError(
                f"{topic.name}-{partition} ends at {newest_offsets[partition]}, before offset "
                f"{here} that {stream.table} has: the broker lost data or is another one"
            )
    return found


def standing(spark: SparkSession, stream: Stream) -> Position:
    """Where a stream's table stands, whatever its topic has become."""
    snapshot = newest_own_snapshot(Jvm(spark), stream.table)
    if snapshot is None:
        return _position_of_data(spark, stream)
    newest = snapshot.commit
    return Position(newest.id, newest.position, newest.topic_id)


def _position_of_data(spark: SparkSession, stream: Stream) -> Position:
    """The position by rows and log, for a table whose own snapshots maintenance has expired.

    The rows alone know nothing of a batch that was wholly bad; the log is never ahead of
    the table. Rows of a commit beside the stream say nothing of where the stream stands.
    """
    table = spark.table(f"{CATALOG}.{stream.table}")
    beside, logged = _in_log(spark, stream)
    own = ~F.coalesce("_commit_id", F.lit(0)).isin(beside)
    rows = (
        table.where(own)
        .groupBy("_kafka_topic_id", "_kafka_partition")
        .agg(F.max("_kafka_offset") + 1, F.max("_commit_id"))
        .collect()
    )
    places = [tuple(row) for row in rows] + logged
    newest = max((commit_id for *_, commit_id in places), default=0)
    current = next((topic for topic, *_, commit_id in places if commit_id == newest), None)
    offsets: dict[int, int] = {}
    for topic, partition, end, _ in places:
        if topic == current:
            offsets[partition] = max(end, offsets.get(partition, 0))
    return Position(max([newest, *beside]), offsets, current)


def _in_log(
    spark: SparkSession, stream: Stream
) -> tuple[list[int], list[tuple[str, int, int, int]]]:
    """The logged commits beside the stream, and where the log says that it stands."""
    if not bronze.exists(spark, commit_log.TABLE):
        return [], []
    known = commit_log.told_of(spark, stream.table)
    if not known.has_commits:
        return [], []
    kinds = (CommitKind.REPLAY, CommitKind.BACKFILL)
    return (
        commit_log.commit_ids(spark, stream.table, *kinds, known=known),
        commit_log.logged_ends(spark, stream, known),
    )
