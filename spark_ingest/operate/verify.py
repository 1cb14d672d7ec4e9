"""Verify that every record at a committed offset is in exactly one table, exactly once."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import CommitKind, CommitOffsets, Committed
from spark_ingest.commits.offsets import Span, Spans, inside, merged, overlap, size, without
from spark_ingest.connect.broker import Broker, Topic
from spark_ingest.errors import MillraceError
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.operate import checkpoints
from spark_ingest.operate.checkpoints import Checkpoint, CurrentSnapshot, PartitionCheckpoint
from spark_ingest.sources import Stream

_GAPS_SHOWN = 20
_PLACE = ["_kafka_partition", "_kafka_offset"]
_NOTHING = dict.fromkeys(
    ("bronze", "quarantined", "discarded", "outside", "distinct", "doubled"), 0
)
_NOT_VERIFIED = PartitionCheckpoint((), 0, 0, 0, 0)


@dataclass(frozen=True)
class PartitionResult:
    """The verification result of one partition of one stream.

    Attributes:
        first: First offset that was ever committed.
        end: Offset after the last committed one.
        bronze: Rows of the bronze table at committed offsets.
        quarantined: Rows of quarantine at committed offsets, including discarded ones.
        doubled: Offsets that are in the tables more than once.
        empty: Offsets without a record, such as transaction markers: according to the broker,
            or to the commit log if the broker has deleted them since.
        missing: Ranges ``(first, end)`` of offsets whose records are in no table.
        uncommitted: Rows of bronze at offsets that no commit covers.
        lag: Offsets on the broker after the last committed one.
        given_up: Offsets whose records expired unread and were accepted as lost.
        discarded: Rows of ``quarantined`` that were discarded.
        topic_id: Kafka's UUID of the topic.
        is_earlier: Whether this topic was deleted and recreated under its name.
    """

    stream: str
    partition: int
    first: int
    end: int
    bronze: int
    quarantined: int
    doubled: int
    empty: int
    missing: tuple[Span, ...]
    uncommitted: int
    lag: int
    given_up: int = 0
    discarded: int = 0
    topic_id: str = ""
    is_earlier: bool = False

    @property
    def holds(self) -> bool:
        """Whether every record is in exactly one table, exactly once."""
        return not (self.missing or self.doubled or self.uncommitted)


@dataclass(frozen=True)
class Verification:
    """The verification result of one stream.

    Attributes:
        partitions: Results of all topics; empty for a stream that never ran.
        new_checkpoints: New checkpoints, of topics without errors.
        since: The checkpoints at which the verification started, by topic id.
    """

    partitions: list[PartitionResult]
    new_checkpoints: list[Checkpoint]
    since: Mapping[str, Checkpoint]


def verify_stream(
    spark: SparkSession,
    broker: Broker,
    stream: Stream,
    topic: Topic,
    known_checkpoints: Mapping[str, Checkpoint] | None = None,
) -> Verification:
    """Compare the tables of one stream with its commits and the broker.

    Previous topics of the same name, accepted as lost, are compared with the commits only. The
    stream's table must exist; ``known_checkpoints`` are by topic id: data before them is
    read again only if it may have changed.

    Raises:
        MillraceError: The topic was recreated, so that the broker does not have its records.
    """
    now = checkpoints.current_snapshot(Jvm(spark), stream.table)
    if now is None or not bronze.exists(spark, commit_log.TABLE):
        return Verification([], [], {})
    began = datetime.now(UTC)
    known = commit_log.committed(spark, stream, now.commit_id)
    filled_from = next(iter(known), topic.id)
    if filled_from != topic.id:
        raise MillraceError(
            f"{stream.table} was filled from topic {topic.name} with id {filled_from}, but its "
            f"current id is {topic.id}: nothing can be verified; check kafka.bootstrap.servers "
            "in profiles/ingest.yml"
        )
    results: list[PartitionResult] = []
    new: list[Checkpoint] = []
    since: dict[str, Checkpoint] = {}
    for topic_id, committed in known.items():
        of = replace(topic, id=topic_id)
        asked = broker if topic_id == topic.id else None
        checkpoint = (known_checkpoints or {}).get(topic_id)
        found = None
        if checkpoint is not None and _is_usable(spark, stream, checkpoint, now, committed):
            found = _verify_topic(spark, asked, stream, of, committed, checkpoint)
            if found is not None and all(result.holds for result in found):
                since[topic_id] = checkpoint
            else:
                # Verify in full, to report all errors.
                found = None
        if found is None:
            found = _verify_topic(spark, asked, stream, of, committed, None) or []
        results += found
        is_new = topic_id not in since or now.snapshot_id != since[topic_id].snapshot_id
        if is_new and all(result.holds for result in found):
            new.append(_checkpoint(topic_id, now, committed, found, began))
    return Verification(results, new, since)


def _is_usable(
    spark: SparkSession,
    stream: Stream,
    checkpoint: Checkpoint,
    now: CurrentSnapshot,
    committed: Committed,
) -> bool:
    """Whether a checkpoint is covered by the commits and the data up to it is unchanged."""
    if checkpoint.commit_id > committed.last:
        return False
    spans = committed.spans()
    for p, of in checkpoint.partitions.items():
        if without(of.ranges, spans.get(p, ())):
            return False
    brought, kinds = commit_log.grown(spark, stream, checkpoint.commit_id, committed.last)
    # A replay moves records from quarantine to bronze before the checkpoint.
    if CommitKind.REPLAY in kinds:
        return False
    return checkpoints.is_untouched(Jvm(spark), stream.table, checkpoint, now, brought)


def _checkpoint(
    topic_id: str,
    now: CurrentSnapshot,
    committed: Committed,
    results: Sequence[PartitionResult],
    at: datetime,
) -> Checkpoint:
    spans = committed.spans()
    partitions = {
        result.partition: PartitionCheckpoint(
            spans[result.partition],
            result.bronze,
            result.quarantined,
            result.empty,
            result.given_up,
        )
        for result in results
        if result.partition in spans
    }
    return Checkpoint(topic_id, committed.last, now.snapshot_id, now.records, partitions, at)


def gaps_text(missing: Sequence[Span]) -> str:
    """Offset ranges as text: ``5-9, 12``."""
    shown = [
        str(first) if end == first + 1 else f"{first}-{end - 1}"
        for first, end in missing[:_GAPS_SHOWN]
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more ranges" if more else "")


def lost_by_log(
    commits: Sequence[CommitOffsets], gone: Spans, known_empty: Spans
) -> dict[int, list[Span]]:
    """The lost records among absent offsets that the broker no longer has.

    A commit stores how many of its offsets had no record, but not which. It has lost records if
    more of its offsets are absent.

    Args:
        gone: Absent ranges that the broker no longer has, by partition.
        known_empty: Absent ranges that the broker has, without records, by partition.

    Returns:
        By partition, the ranges of ``gone`` in commits that have lost records.
    """
    left = {taken.commit_id: taken.empty for taken in commits}
    for _, commit_id, first, end in _pieces(commits, known_empty):
        if commit_id is not None:
            left[commit_id] -= end - first
    pieces = list(_pieces(commits, gone))
    for _, commit_id, first, end in pieces:
        if commit_id is not None:
            left[commit_id] -= end - first
    lost: dict[int, list[Span]] = defaultdict(list)
    for partition, commit_id, first, end in pieces:
        if commit_id is None or left[commit_id] < 0:
            lost[partition].append((first, end))
    return {partition: list(merged(spans)) for partition, spans in lost.items()}


def _pieces(
    commits: Sequence[CommitOffsets], ranges: Spans
) -> Iterator[tuple[int, int | None, int, int]]:
    """Split ranges at commit boundaries: (partition, commit id, first, end)."""
    taken: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for commit in commits:
        for partition, (first, end) in commit.offsets.items():
            if end > first:
                taken[partition].append((first, end, commit.commit_id))
    for partition, spans in ranges.items():
        of_partition = sorted(taken[partition])
        starts = [first for first, *_ in of_partition]
        for begin, end in spans:
            here = begin
            at = max(bisect.bisect_right(starts, here) - 1, 0)
            for first, behind, commit_id in of_partition[at:]:
                if first >= end:
                    break
                if behind <= here:
                    continue
                if first > here:
                    yield partition, None, here, first
                    here = first
                yield partition, commit_id, here, min(behind, end)
                here = min(behind, end)
            if here < end:
                yield partition, None, here, end


def _verify_topic(
    spark: SparkSession,
    broker: Broker | None,
    stream: Stream,
    topic: Topic,
    committed: Committed,
    since: Checkpoint | None,
) -> list[PartitionResult] | None:
    """Verify one topic; without a broker, by commit log and tables only.

    Data up to ``since`` is not read again. Returns None if quarantine has changed before that
    checkpoint.
    """
    all_spans = committed.spans()
    before = {} if since is None else since.partitions
    spans = {
        p: tuple(without(ranges, before[p].ranges)) if p in before else ranges
        for p, ranges in all_spans.items()
    }
    after = 0 if since is None else since.commit_id
    quarantined = _quarantined(spark, stream, topic).cache()
    landed = _landed(spark, stream, topic, quarantined, after, committed.last).cache()
    try:
        verified = {p: of.ranges for p, of in before.items()}
        old = _counts(quarantined, verified) if verified else {}
        if any(
            (old.get(p, _NOTHING)["quarantined"], old.get(p, _NOTHING)["distinct"])
            != (of.quarantined, of.quarantined)
            for p, of in before.items()
        ):
            return None
        counts = _counts(landed, spans)
        absent = _absent(landed, spans, counts)
    finally:
        landed.unpersist()
        quarantined.unpersist()
    given_up = {p: overlap(absent.get(p, []), committed.given_up.get(p, ())) for p in spans}
    absent = {p: without(absent.get(p, []), given_up[p]) for p in spans}
    oldest = broker.first_offsets(topic) if broker is not None else {}
    newest = broker.end_offsets(topic) if broker is not None else {}
    missing: dict[int, list[Span]] = {}
    known_empty: dict[int, list[Span]] = {}
    gone: dict[int, list[Span]] = {}
    for partition, ranges in absent.items():
        # The broker has no records of a partition that does not exist.
        border = oldest.get(partition)
        kept = ranges if border is None else without(ranges, [(0, border)])
        gone[partition] = ranges if border is None else overlap(ranges, [(0, border)])
        missing[partition] = []
        if border is not None and broker is not None and kept:
            missing[partition] = broker.records_in(topic.name, partition, kept)
            known_empty[partition] = without(kept, missing[partition])
    if any(gone.values()):
        commits = commit_log.offsets_by_commit(spark, stream, topic)
        for partition, lost in lost_by_log(commits, gone, known_empty).items():
            missing[partition] = sorted(missing[partition] + lost)
    results = []
    for partition in sorted(all_spans.keys() | counts.keys()):
        taken = all_spans.get(partition, ((0, 0),))
        end = committed.ranges.get(partition, taken[-1])[1]
        count = counts.get(partition, _NOTHING)
        lost = missing.get(partition, [])
        of = before.get(partition, _NOT_VERIFIED)
        results.append(
            PartitionResult(
                stream=stream.name,
                partition=partition,
                first=taken[0][0],
                end=end,
                bronze=count["bronze"] + of.bronze,
                quarantined=count["quarantined"] + of.quarantined,
                doubled=count["doubled"],
                empty=size(absent.get(partition, [])) - size(lost) + of.empty,
                missing=tuple(lost),
                uncommitted=count["outside"],
                lag=max(newest.get(partition, end) - end, 0),
                given_up=size(given_up.get(partition, [])) + of.given_up,
                discarded=count["discarded"] + old.get(partition, _NOTHING)["discarded"],
                topic_id=topic.id,
                is_earlier=broker is None,
            )
        )
    return results


def _quarantined(spark: SparkSession, stream: Stream, topic: Topic) -> DataFrame:
    """The (partition, offset) of all quarantined records of a topic."""
    quarantined = quarantine_table.of_topic(spark, topic.name, topic.id).where(
        "replayed_at is null"
    )
    replays = commit_log.commit_ids(spark, stream.table, CommitKind.REPLAY)
    if replays:
        # A replay publishes records before it marks them in quarantine.
        table = spark.table(f"{CATALOG}.{stream.table}")
        replayed = table.where(
            (F.col("_kafka_topic_id") == topic.id) & F.col("_commit_id").isin(replays)
        )
        quarantined = quarantined.join(replayed.select(*_PLACE), _PLACE, "left_anti")
    discarded = F.col("discarded_at").isNotNull().alias("discarded")
    return quarantined.select(*_PLACE, F.lit(True).alias("is_quarantined"), discarded)


def _landed(
    spark: SparkSession, stream: Stream, topic: Topic, quarantined: DataFrame, after: int, last: int
) -> DataFrame:
    """The (partition, offset) of all records of a topic, and whether they are quarantined.

    Excludes commits after ``last``, since a stream may be running, and those up to ``after``,
    which are verified already.
    """
    in_bronze = spark.table(f"{CATALOG}.{stream.table}").where(F.col("_kafka_topic_id") == topic.id)
    if after:
        # A separate predicate, so that files of earlier commits are skipped.
        in_bronze = in_bronze.where(F.col("_commit_id") > after)
    in_bronze = in_bronze.where(F.coalesce("_commit_id", F.lit(0)) <= last)
    no = F.lit(False)
    in_bronze = in_bronze.select(*_PLACE, no.alias("is_quarantined"), no.alias("discarded"))
    return in_bronze.unionAll(quarantined)


def _counts(landed: DataFrame, spans: Spans) -> dict[int, dict[str, int]]:
    rows = (
        landed.withColumn("inside", F.expr(inside(spans)))
        .groupBy("_kafka_partition")
        .agg(
            F.count_if(F.col("inside") & ~F.col("is_quarantined")).alias("bronze"),
            F.count_if(F.col("inside") & F.col("is_quarantined")).alias("quarantined"),
            F.count_if(F.col("inside") & F.col("discarded")).alias("discarded"),
            # In quarantine these are of a running or failed batch; the next start removes them.
            F.count_if(~F.col("inside") & ~F.col("is_quarantined")).alias("outside"),
            F.countDistinct(F.when(F.col("inside"), F.col("_kafka_offset"))).alias("distinct"),
        )
        .collect()
    )
    counts: dict[int, dict[str, int]] = {}
    for row in rows:
        values: dict[str, Any] = row.asDict()
        values["doubled"] = values["bronze"] + values["quarantined"] - values["distinct"]
        counts[values.pop("_kafka_partition")] = values
    return counts


def _absent(
    landed: DataFrame, spans: Spans, counts: Mapping[int, Mapping[str, int]]
) -> dict[int, list[Span]]:
    """By partition, the committed offset ranges that are in no table."""
    short = {
        partition: ranges
        for partition, ranges in spans.items()
        if counts.get(partition, {}).get("distinct", 0) < size(ranges)
    }
    gaps: dict[int, list[Span]] = {p: [] for p in short}
    if not short:
        return gaps
    # The bounds of each range are added as rows, to find gaps at its ends.
    ends = [
        (p, offset)
        for p, ranges in short.items()
        for first, end in ranges
        for offset in (first - 1, end)
    ]
    spark = landed.sparkSession
    bounds = spark.createDataFrame(ends, "_kafka_partition int, _kafka_offset bigint")
    in_order = Window.partitionBy("_kafka_partition").orderBy("_kafka_offset")
    found = (
        landed.where(inside(short))
        .select(*_PLACE)
        .unionAll(bounds)
        .distinct()
        .withColumn("next", F.lead("_kafka_offset").over(in_order))
        .where(F.col("next") > F.col("_kafka_offset") + 1)
        .orderBy(*_PLACE)
    )
    for partition, offset, following in found.toLocalIterator():
        # Offsets between two ranges were not committed.
        gaps[partition] += overlap([(offset + 1, following)], short[partition])
    return gaps
