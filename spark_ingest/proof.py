"""The proof: every record of what was committed is in exactly one table, exactly once."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from spark_ingest import bronze, ledger, quarantine
from spark_ingest.committed import Committed, Span, Taken, merged
from spark_ingest.errors import MillraceError
from spark_ingest.kafka import Broker, Topic
from spark_ingest.lease import CommitKind
from spark_ingest.session import CATALOG
from spark_ingest.sources import Stream

_GAPS_SHOWN = 20
_Spans = Mapping[int, Sequence[Span]]


@dataclass(frozen=True)
class PartitionProof:
    """What the tables and the broker say of one partition of one stream.

    Attributes:
        stream: The stream's name.
        partition: The partition.
        first: First offset that was ever committed.
        end: Offset behind the last committed one.
        bronze: Rows in the bronze table with such an offset.
        quarantined: Rows in quarantine with such an offset, those that were discarded too.
        doubled: Offsets that are in the tables more than once.
        empty: Offsets that hold no record (transaction markers and the like): by the broker,
            or by the commit log where the broker has removed them since.
        missing: Ranges ``(first, end)`` of offsets that no table holds and that held records.
        uncommitted: Rows of bronze at offsets that no commit covers.
        lag: Records on the broker behind the last committed one.
        given_up: Offsets whose records expired unread, and a person accepted that.
        discarded: Rows of ``quarantined`` that somebody decided not to want.
        topic_id: Kafka's UUID of the topic.
        is_earlier: Whether the topic is gone, and another of its name in its place.
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
        """Whether every record is in exactly one table exactly once."""
        return not (self.missing or self.doubled or self.uncommitted)


def prove(
    spark: SparkSession, broker: Broker, stream: Stream, topic: Topic
) -> list[PartitionProof]:
    """Hold the tables of one stream against its commits and the broker.

    Topics of the same name that were there before, and were given up by a person, are held
    against the commits alone.

    Args:
        spark: A session on the lake.
        broker: The cluster that the stream comes from.
        stream: A stream whose table exists.
        topic: Its topic.

    Returns:
        A proof for each partition that was ever committed; empty for a stream that never ran.

    Raises:
        MillraceError: The table was filled from another topic of the same name, so that the
            broker cannot be asked about its records.
    """
    if not bronze.exists(spark, ledger.TABLE):
        return []
    known = ledger.committed(spark, stream)
    filled_from = next(iter(known), topic.id)
    if filled_from != topic.id:
        raise MillraceError(
            f"{stream.table} was filled from a topic {topic.name} with the id {filled_from}, "
            f"and the one there now is {topic.id}: nothing can be proved; is "
            "kafka.bootstrap.servers in profiles/ingest.yml the right cluster?"
        )
    proofs: list[PartitionProof] = []
    for topic_id, committed in known.items():
        asked = broker if topic_id == topic.id else None
        proofs += _prove(spark, asked, stream, replace(topic, id=topic_id), committed)
    return proofs


def gaps_text(missing: Sequence[Span]) -> str:
    """Offset ranges for people: ``5-9, 12``."""
    shown = [
        str(first) if end == first + 1 else f"{first}-{end - 1}"
        for first, end in missing[:_GAPS_SHOWN]
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more ranges" if more else "")


def lost_by_log(
    commits: Sequence[Taken], gone: _Spans, told_empty: _Spans
) -> dict[int, list[Span]]:
    """Which of the absent offsets that no broker can be asked about held records.

    A commit tells how many of its offsets held none when Kafka delivered it, not which. It
    explains its absent offsets where they are no more than that.

    Args:
        commits: What each commit took.
        gone: By partition, the absent ranges that the broker has no more.
        told_empty: By partition, the absent ranges that it still has and that hold no record.

    Returns:
        By partition, the ranges of ``gone`` that are not explained: of a commit that lost
        some of them, all.
    """
    left = {taken.commit_id: taken.empty for taken in commits}
    for _, commit_id, first, end in _pieces(commits, told_empty):
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
    commits: Sequence[Taken], ranges: _Spans
) -> Iterator[tuple[int, int | None, int, int]]:
    """Ranges cut at the borders of commits: (partition, commit id, first, end)."""
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


def _prove(
    spark: SparkSession,
    broker: Broker | None,
    stream: Stream,
    topic: Topic,
    committed: Committed,
) -> list[PartitionProof]:
    """The proof of one topic; without a broker by log and tables alone."""
    spans = committed.spans()
    held = _held(spark, stream, topic, committed.last).cache()
    try:
        counts = _counts(held, spans)
        absent = _absent(held, spans, counts)
    finally:
        held.unpersist()
    given_up = {
        p: _overlap(absent.get(p, []), committed.given_up.get(p, ())) for p in spans
    }
    absent = {p: _without(absent.get(p, []), given_up[p]) for p in spans}
    oldest = broker.first_offsets(topic) if broker is not None else {}
    newest = broker.end_offsets(topic) if broker is not None else {}
    missing: dict[int, list[Span]] = {}
    told_empty: dict[int, list[Span]] = {}
    gone: dict[int, list[Span]] = {}
    for partition, ranges in absent.items():
        # No broker has anything of a partition that is not there.
        border = oldest.get(partition)
        kept = ranges if border is None else _without(ranges, [(0, border)])
        gone[partition] = ranges if border is None else _overlap(ranges, [(0, border)])
        missing[partition] = []
        if border is not None and broker is not None:
            missing[partition] = broker.records_in(topic.name, partition, kept)
            told_empty[partition] = _without(kept, missing[partition])
    if any(gone.values()):
        commits = ledger.taken(spark, stream, topic)
        for partition, lost in lost_by_log(commits, gone, told_empty).items():
            missing[partition] = sorted(missing[partition] + lost)
    proofs = []
    for partition in sorted(spans.keys() | counts.keys()):
        taken = spans.get(partition, ((0, 0),))
        end = committed.ranges.get(partition, taken[-1])[1]
        count = counts.get(partition, {})
        lost = missing.get(partition, [])
        proofs.append(
            PartitionProof(
                stream=stream.name,
                partition=partition,
                first=taken[0][0],
                end=end,
                bronze=count.get("bronze", 0),
                quarantined=count.get("quarantined", 0),
                doubled=count.get("doubled", 0),
                empty=_size(absent.get(partition, [])) - _size(lost),
                missing=tuple(lost),
                uncommitted=count.get("outside", 0),
                lag=max(newest.get(partition, end) - end, 0),
                given_up=_size(given_up.get(partition, [])),
                discarded=count.get("discarded", 0),
                topic_id=topic.id,
                is_earlier=broker is None,
            )
        )
    return proofs


def _held(spark: SparkSession, stream: Stream, topic: Topic, last: int) -> DataFrame:
    """Every (partition, offset) that a table holds of a topic, and whether it is set aside.

    Commits after ``last`` are left out: a stream may be running.
    """
    place = ["_kafka_partition", "_kafka_offset"]
    mine = F.col("_kafka_topic_id") == topic.id
    in_bronze = spark.table(f"{CATALOG}.{stream.table}").where(mine)
    aside = spark.table(f"{CATALOG}.{quarantine.TABLE}").where(
        mine & (F.col("_kafka_topic") == topic.name) & F.col("replayed_at").isNull()
    )
    in_bronze = in_bronze.where(F.coalesce("_commit_id", F.lit(0)) <= last)
    replays = ledger.commit_ids(spark, stream, CommitKind.REPLAY)
    if replays:
        # A replay publishes its records before it marks them in quarantine.
        replayed = in_bronze.where(F.col("_commit_id").isin(replays)).select(*place)
        aside = aside.join(replayed, place, "left_anti")
    discarded = F.col("discarded_at").isNotNull().alias("discarded")
    return in_bronze.select(
        *place, F.lit(False).alias("aside"), F.lit(False).alias("discarded")
    ).unionAll(aside.select(*place, F.lit(True).alias("aside"), discarded))


def _counts(held: DataFrame, spans: _Spans) -> dict[int, dict[str, int]]:
    rows = (
        held.withColumn("inside", _inside(spans))
        .groupBy("_kafka_partition")
        .agg(
            F.count_if(F.col("inside") & ~F.col("aside")).alias("bronze"),
            F.count_if(F.col("inside") & F.col("aside")).alias("quarantined"),
            F.count_if(F.col("inside") & F.col("discarded")).alias("discarded"),
            # In quarantine they are a running or broken batch's, removed at the next start.
            F.count_if(~F.col("inside") & ~F.col("aside")).alias("outside"),
            F.countDistinct(F.when(F.col("inside"), F.col("_kafka_offset"))).alias(
                "distinct"
            ),
        )
        .collect()
    )
    counts: dict[int, dict[str, int]] = {}
    for row in rows:
        values: dict[str, Any] = row.asDict()
        values["doubled"] = (
            values["bronze"] + values["quarantined"] - values["distinct"]
        )
        counts[values.pop("_kafka_partition")] = values
    return counts


def _absent(
    held: DataFrame, spans: _Spans, counts: Mapping[int, Mapping[str, int]]
) -> dict[int, list[Span]]:
    """By partition, the offset ranges inside the committed ones that no table holds."""
    short = {
        partition: ranges
        for partition, ranges in spans.items()
        if counts.get(partition, {}).get("distinct", 0) < _size(ranges)
    }
    gaps: dict[int, list[Span]] = {p: [] for p in short}
    if not short:
        return gaps
    # The two ends of each range stand in for rows, so that gaps at the ends show too.
    ends = [
        (p, offset)
        for p, ranges in short.items()
        for first, end in ranges
        for offset in (first - 1, end)
    ]
    place = ["_kafka_partition", "_kafka_offset"]
    spark = held.sparkSession
    bounds = spark.createDataFrame(ends, "_kafka_partition int, _kafka_offset bigint")
    in_order = Window.partitionBy("_kafka_partition").orderBy("_kafka_offset")
    found = (
        held.where(_inside(short))
        .select(*place)
        .unionAll(bounds)
        .distinct()
        .withColumn("next", F.lead("_kafka_offset").over(in_order))
        .where(F.col("next") > F.col("_kafka_offset") + 1)
        .orderBy(*place)
    )
    for partition, offset, following in found.toLocalIterator():
        # Between two ranges nothing was committed.
        gaps[partition] += _overlap([(offset + 1, following)], short[partition])
    return gaps


def _inside(spans: _Spans) -> Column:
    inside = F.lit(False)
    for partition, ranges in spans.items():
        for first, end in ranges:
            offset = F.col("_kafka_offset")
            inside = inside | (
                (F.col("_kafka_partition") == partition)
                & (offset >= first)
                & (offset < end)
            )
    return inside


def _size(ranges: Sequence[Span]) -> int:
    return sum(end - first for first, end in ranges)


def _overlap(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
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


def _without(ranges: Sequence[Span], others: Sequence[Span]) -> list[Span]:
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
