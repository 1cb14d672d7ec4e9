"""The position at which a stream resumes: its table is the checkpoint.

:func:`resume` also cleans up after earlier runs: staged commits, missing or excess rows of the
commit log, and quarantine rows of batches that were never published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.commit_log_writer import CommitLog
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind, newest_own_snapshot
from spark_ingest.commits.lease import Lease
from spark_ingest.commits.offsets import beyond
from spark_ingest.commits.table_identity import KIND, Identity, PreviousTable
from spark_ingest.connect.broker import Begin, Broker, Topic
from spark_ingest.errors import (
    ConfigurationError,
    MillraceError,
    PersonNeeded,
    ServiceUnavailable,
)
from spark_ingest.lake import bronze, table_change
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.sources import Stream

_LOG = f"{CATALOG}.{commit_log.TABLE}"
_PLACE = ("_kafka_topic_id", "_kafka_partition", "_kafka_offset")


@dataclass(frozen=True)
class Position:
    """The committed position of a stream's table.

    Attributes:
        commit_id: The newest commit; 0 for a new table.
        offsets: The next offset by partition.
        topic_id: Kafka's UUID of the topic that the rows are from; None for a new table.
    """

    commit_id: int
    offsets: dict[int, int]
    topic_id: str | None


def resume(
    lease: Lease,
    stream: Stream,
    topic: Topic,
    broker: Broker,
    log: CommitLog,
    begin: Begin,
    note: Callable[[str], None],
) -> Position:
    """Clean up after earlier runs, and find the position to read from.

    Args:
        lease: The stream's lease of its table.
        log: Writes the commits of this process to the commit log.
        begin: Start offsets of a table without commits.
        note: Receives messages for users.

    Raises:
        PersonNeeded: Records expired before they were read, or the topic was recreated.
        LeaseLost: Another writer took the table over.
        MillraceError: A service or the catalog is unavailable.
    """
    spark, table = log.spark, stream.table
    # Before the table is read: discard staged batches, and fence commits that are in flight.
    lease.start_over()
    # Otherwise `catch_up` would log this process's commits a second time.
    log.flush(stream)
    known = commit_log.identity_of(spark, table)
    # Before the position is checked, which may fail until a user intervenes.
    if rolled_back := _remove_rows_ahead(spark, stream, known):
        note(rolled_back)
        known = commit_log.identity_of(spark, table)
    try:
        here = next_position(spark, broker, stream, topic, begin)
    except (ConfigurationError, ServiceUnavailable):
        raise
    except MillraceError as error:
        raise PersonNeeded(str(error)) from error
    earlier = commit_log.catch_up(spark, stream, lease.check, known)
    if here.topic_id is None and (earlier or begin != "earliest"):
        # Commit the start offsets before quarantine rows of a previous table are removed: records
        # that expire from now on are reported as a gap.
        here = _commit_beginning(lease, stream, topic, here, log)
        if earlier:
            note(_recreated(stream, earlier, topic, here.offsets))
    _remove_uncommitted(spark, stream, topic, here.offsets, lease.check)
    return here


def next_position(
    spark: SparkSession, broker: Broker, stream: Stream, topic: Topic, begin: Begin = "earliest"
) -> Position:
    """The position that a stream reads from next, checked against its topic.

    ``begin`` has the start offsets of a table without commits.

    Raises:
        MillraceError: The topic was recreated, or records expired before they were read.
    """
    found = position_of(spark, stream)
    if found.topic_id not in (None, topic.id):
        raise topic_recreated(stream, str(found.topic_id), topic.id)
    oldest, newest = broker.first_offsets(topic), broker.end_offsets(topic)
    first = oldest if found.commit_id else broker.begin_offsets(topic, begin)
    for partition in topic.partitions:
        if partition not in found.offsets:
            # A new partition starts at the first offset that the broker has.
            found.offsets[partition] = first[partition]
        here = found.offsets[partition]
        if here < oldest[partition]:
            raise MillraceError(
                f"{topic.name}-{partition}: records {here} to {oldest[partition] - 1} expired "
                f"before they were read; {stream.table} would have a gap: increase the topic's "
                "retention.ms and run more often; to continue without them: "
                f"`spark-ingest recover {stream.name} --accept-gap`"
            )
        if here > newest[partition]:
            raise MillraceError(
                f"{topic.name}-{partition} ends at {newest[partition]}, before offset "
                f"{here} that {stream.table} has: the broker lost data, or it is another broker"
            )
    return found


def topic_recreated(stream: Stream, then: str, now: str) -> MillraceError:
    """The error for a topic that was recreated since the table was filled."""
    return MillraceError(
        f"topic {stream.topic} was deleted and recreated since {stream.table} was filled "
        f"(old topic id {then}, new {now}), so its offsets refer to other records: declare "
        "another source and table for the new topic, or continue this table with it: "
        f"`spark-ingest recover {stream.name} --new-topic`"
    )


def position_of(spark: SparkSession, stream: Stream) -> Position:
    """The committed position of a stream's table, without a check of its topic."""
    snapshot = newest_own_snapshot(Jvm(spark), stream.table)
    if snapshot is None:
        return _position_of_data(spark, stream)
    newest = snapshot.commit
    return Position(newest.id, newest.position, newest.topic_id)


def _position_of_data(spark: SparkSession, stream: Stream) -> Position:
    """The position from rows and log, for a table whose own snapshots have expired.

    Rows alone do not show a batch with bad records only; the log is never ahead of the table.
    Rows of backfills and replays do not move the stream's position.
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
    """The logged backfills and replays, and the stream's end offsets in the log."""
    if not bronze.exists(spark, commit_log.TABLE):
        return [], []
    known = commit_log.identity_of(spark, stream.table)
    if not known.has_commits:
        return [], []
    kinds = (CommitKind.REPLAY, CommitKind.BACKFILL)
    return (
        commit_log.commit_ids(spark, stream.table, *kinds, known=known),
        commit_log.logged_ends(spark, stream, known),
    )


# A table that was created, or recreated ------------------------------------------------------


def _commit_beginning(
    lease: Lease, stream: Stream, topic: Topic, here: Position, log: CommitLog
) -> Position:
    """Commit the start offsets of the table, with no rows.

    Otherwise a restart after a crash would choose later offsets and skip records.
    """
    began = datetime.now(UTC)
    commit = Commit(here.commit_id + 1, topic.id, here.offsets, here.offsets)
    lease.stage_files([], commit)
    lease.publish()
    seconds = (datetime.now(UTC) - began).total_seconds()
    log.add(lease, stream, BatchResult(commit, 0, 0, 0, began, seconds))
    return Position(commit.id, here.offsets, topic.id)


def _recreated(
    stream: Stream, earlier: PreviousTable, topic: Topic, begins: Mapping[int, int]
) -> str:
    """The note for a table that was dropped and recreated.

    ``begins`` has the start offset of the new table by partition.
    """
    note = (
        f"{stream.name}: {stream.table} was recreated since commit {earlier.last} of a previous "
        f"table (table UUID {earlier.uuid}): it starts at commit 1, with the records that the "
        f"broker still has; the previous table's commits stay in {commit_log.TABLE}; "
        "build the marts with `dbt build --full-refresh`"
    )
    if earlier.topic_id != topic.id:
        return f"{note}; its records were of topic id {earlier.topic_id}, which no longer exists"
    lost = [
        f"{p}: {first} to {min(end, begins.get(p, end)) - 1}"
        for p, (first, end) in earlier.ranges.items()
        if first < min(end, begins.get(p, end))
    ]
    if lost:
        note += f"; offsets of the previous table that are lost: {', '.join(lost)}"
    return note


# A table that was rolled back ----------------------------------------------------------------


def _remove_rows_ahead(spark: SparkSession, stream: Stream, known: Identity) -> str | None:
    """Remove log rows of commits that a table no longer has after a rollback.

    Registering older metadata has the same effect. The next commits reuse the ids, so these rows
    would describe other records. A rollback is not detected if the table's own snapshots have
    expired. ``known`` must be read before the table, so that concurrent commits do not put the
    log ahead.

    Returns:
        The note for users; None if the log is not ahead.
    """
    uuid, last = known.uuid, known.logged.largest
    newest = newest_own_snapshot(Jvm(spark), stream.table)
    if newest is None or last is None or last <= newest.commit.id:
        return None
    first = newest.commit.id + 1
    ahead = f"table_uuid = '{uuid}' and commit_id between {first} and {last}"
    kinds = spark.table(_LOG).where(ahead).select("kind").distinct().collect()
    if any(row[0] == CommitKind.REPLAY for row in kinds):
        _reopen_replayed(spark, stream, newest.committed_at)
    # Before the rows are deleted: a crash in between would leave no trace of the rollback.
    _log_rollback(spark, uuid)
    table_change.rewrite(lambda: spark.sql(f"delete from {_LOG} where {ahead}"))
    return (
        f"{stream.name}: {stream.table} was rolled back to commit {first - 1}: its commits "
        f"{first} to {last} were removed from {commit_log.TABLE}, and their records are read "
        "again from the broker; dbt requires a full refresh of the marts that have read them"
    )


def _log_rollback(spark: SparkSession, uuid: str) -> None:
    """Update the time of the log's row that names the table with this UUID.

    dbt then requires a full refresh of each model that has read the table.
    """
    statement = (
        f"update {_LOG} set committed_at = "
        "greatest(current_timestamp(), committed_at + interval 1 microsecond) "
        f"where table_uuid = '{uuid}' and kind = '{KIND}'"
    )
    table_change.rewrite(lambda: spark.sql(statement))


def _reopen_replayed(spark: SparkSession, stream: Stream, since: datetime) -> None:
    """Reopen the bad records that were replayed since then and that the table no longer has."""
    table = spark.table(f"{CATALOG}.{stream.table}").select(*_PLACE)
    is_since = F.col("replayed_at") > F.lit(since)
    replayed = quarantine_table.of_topic(spark, stream.topic).where(is_since)
    missing = replayed.join(table, [*_PLACE], "left_anti").select(*_PLACE).distinct()
    quarantine_table.merge(
        missing,
        _PLACE,
        [f"quarantine._kafka_topic = '{stream.topic}'"],
        lambda merge: merge.whenMatched(F.expr("quarantine.replayed_at is not null")).update(
            {"replayed_at": F.lit(None).cast("timestamp")}
        ),
    )


# Quarantine rows of batches that were never published ----------------------------------------


def _remove_uncommitted(
    spark: SparkSession,
    stream: Stream,
    topic: Topic,
    committed: Mapping[int, int],
    check: Callable[[], None],
) -> None:
    """Remove quarantine rows of batches that were never committed.

    Two kinds. A failed batch leaves rows at or beyond the committed offsets. A writer whose table
    was taken over, and that crashed before it noticed, leaves rows at offsets that its successor
    committed: no commit has the start of their batch, and they are removed only if another row,
    or bronze, has the record.

    The commit log must be up to date. Rows of a previous topic of the same name stay.
    ``committed`` has the first uncommitted offset by partition, 0 if missing; ``check`` raises if
    the table was taken over.

    Raises:
        LeaseLost: The table was taken over.
    """
    # Most topics have no bad records, and a query costs as much as a small batch.
    if not quarantine_table.may_have(spark, topic.name):
        return
    batches, has_older = quarantine_table.uncommitted(spark, topic, committed)
    # A new writer resumes from these offsets, too. So remove only batches that existed while this
    # writer had the lease.
    check()
    quarantine_table.remove_uncommitted(spark, topic, committed, batches)
    if has_older:
        _remove_rows_of_replaced_writers(spark, stream, topic, committed)


def _remove_rows_of_replaced_writers(
    spark: SparkSession, stream: Stream, topic: Topic, committed: Mapping[int, int]
) -> None:
    place = ["_kafka_partition", "_kafka_offset"]
    rows = quarantine_table.of_topic(spark, topic.name, topic.id).where(
        F.col("replayed_at").isNull() & ~F.expr(beyond(committed))
    )
    starts = (
        spark.table(_LOG)
        .where((F.col("table_name") == stream.table) & F.col("started_at").isNotNull())
        .select(F.col("started_at").alias("_ingested_at"))
    )
    batches = rows.select("_ingested_at").distinct()
    unknown = batches.join(starts, "_ingested_at", "left_anti").cache()
    try:
        if unknown.isEmpty():
            return
        places = rows.select(*place, "_ingested_at")
        suspects = places.join(unknown, "_ingested_at", "left_semi")
        committed_rows = places.join(unknown, "_ingested_at", "left_anti").select(*place)
        table = spark.table(f"{CATALOG}.{stream.table}")
        in_bronze = table.where(F.col("_kafka_topic_id") == topic.id).select(*place)
        # A commit that was logged late has no start either: of several suspect rows of one
        # record keep the last one.
        newest = suspects.groupBy(*place).agg(F.max("_ingested_at").alias("last"))
        repeated = suspects.join(newest, place).where("_ingested_at < last")
        known = committed_rows.unionAll(in_bronze).distinct()
        elsewhere = suspects.join(known, place, "left_semi")
        of_topic = [
            f"quarantine._kafka_topic = '{topic.name}'",
            f"quarantine._kafka_topic_id = '{topic.id}'",
            "quarantine.replayed_at is null",
        ]
        duplicates = elsewhere.unionByName(repeated.drop("last")).distinct()
        quarantine_table.merge(
            duplicates, duplicates.columns, of_topic, lambda merge: merge.whenMatched().delete()
        )
    finally:
        unknown.unpersist()
