"""The proof: every record of what was committed is in exactly one table, exactly once."""

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
from spark_ingest.operate import proof_marks
from spark_ingest.operate.proof_marks import Head, Mark, PartitionMark
from spark_ingest.sources import Stream

_GAPS_SHOWN = 20
_PLACE = ["_kafka_partition", "_kafka_offset"]
_NOTHING = dict.fromkeys(
    ("bronze", "quarantined", "discarded", "outside", "distinct", "doubled"), 0
)
_UNPROVED = PartitionMark((), 0, 0, 0, 0)


@dataclass(frozen=True)
class PartitionProof:
    """What tables and broker hold of one partition of one stream.

    Attributes:
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


@dataclass(frozen=True)
class Proof:
    """What tables and broker hold of one stream.

    Attributes:
        partitions: Of each topic; empty for a stream that never ran.
        marks: Up to where each topic was proved, of those that hold and have got on.
        since: By topic id, the mark that was gone on from.
    """

    partitions: list[PartitionProof]
    marks: list[Mark]
    since: Mapping[str, Mark]


def prove(
    spark: SparkSession,
    broker: Broker,
    stream: Stream,
    topic: Topic,
    marks: Mapping[str, Mark] | None = None,
) -> Proof:
    """Hold the tables of one stream against its commits and the broker.

    Topics of the same name that were there before, and were given up by a person, are held
    against the commits alone. The stream's table exists; ``marks`` say up to where it was
    proved before, by topic id: what is behind that is read again only where it may have
    changed.

    Raises:
        MillraceError: The table was filled from another topic of the same name, so that the
            broker cannot be asked about its records.
    """
    now = proof_marks.head(Jvm(spark), stream.table)
    if now is None or not bronze.exists(spark, commit_log.TABLE):
        return Proof([], [], {})
    began = datetime.now(UTC)
    known = commit_log.committed(spark, stream, now.commit_id)
    filled_from = next(iter(known), topic.id)
    if filled_from != topic.id:
        raise MillraceError(
            f"{stream.table} was filled from a topic {topic.name} with the id {filled_from}, "
            f"and the one there now is {topic.id}: nothing can be proved; is "
            "kafka.bootstrap.servers in profiles/ingest.yml the right cluster?"
        )
    proofs: list[PartitionProof] = []
    reached: list[Mark] = []
    since: dict[str, Mark] = {}
    for topic_id, committed in known.items():
        of = replace(topic, id=topic_id)
        asked = broker if topic_id == topic.id else None
        mark = (marks or {}).get(topic_id)
        found = None
        if mark is not None and _is_usable(spark, stream, mark, now, committed):
            found = _prove(spark, asked, stream, of, committed, mark)
            if found is not None and all(proof.holds for proof in found):
                since[topic_id] = mark
            else:
                # In full, so that all that is wrong is named.
                found = None
        if found is None:
            found = _prove(spark, asked, stream, of, committed, None) or []
        proofs += found
        is_new = topic_id not in since or now.snapshot_id != since[topic_id].snapshot_id
        if is_new and all(proof.holds for proof in found):
            reached.append(_marked(topic_id, now, committed, found, began))
    return Proof(proofs, reached, since)


def _is_usable(
    spark: SparkSession, stream: Stream, mark: Mark, now: Head, committed: Committed
) -> bool:
    """Whether nothing behind a mark can have changed, and the commits still have it."""
    if mark.commit_id > committed.last:
        return False
    spans = committed.spans()
    for p, of in mark.partitions.items():
        if without(of.ranges, spans.get(p, ())):
            return False
    brought, kinds = commit_log.grown(spark, stream, mark.commit_id, committed.last)
    # A replay moves records from quarantine to bronze behind the mark.
    if CommitKind.REPLAY in kinds:
        return False
    return proof_marks.is_untouched(Jvm(spark), stream.table, mark, now, brought)


def _marked(
    topic_id: str, now: Head, committed: Committed, proofs: Sequence[PartitionProof], at: datetime
) -> Mark:
    spans = committed.spans()
    partitions = {
        proof.partition: PartitionMark(
            spans[proof.partition], proof.bronze, proof.quarantined, proof.empty, proof.given_up
        )
        for proof in proofs
        if proof.partition in spans
    }
    return Mark(topic_id, committed.last, now.snapshot_id, now.records, partitions, at)


def gaps_text(missing: Sequence[Span]) -> str:
    """Offset ranges for people: ``5-9, 12``."""
    shown = [
        str(first) if end == first + 1 else f"{first}-{end - 1}"
        for first, end in missing[:_GAPS_SHOWN]
    ]
    more = len(missing) - len(shown)
    return ", ".join(shown) + (f" and {more} more ranges" if more else "")


def lost_by_log(
    commits: Sequence[CommitOffsets], gone: Spans, known_empty: Spans
) -> dict[int, list[Span]]:
    """Which of the absent offsets that no broker can be asked about held records.

    A commit records how many of its offsets held none when Kafka delivered it, not which. It
    explains its absent offsets where they are no more than that.

    Args:
        gone: By partition, the absent ranges that the broker has no more.
        known_empty: By partition, the absent ranges that it still has and that hold no record.

    Returns:
        By partition, the ranges of ``gone`` that are not explained: of a commit that lost
        some of them, all.
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
    since: Mark | None,
) -> list[PartitionProof] | None:
    """The proof of one topic; without a broker by log and tables alone.

    ``since`` was proved before, and is not read again. None where quarantine has changed behind
    the mark.
    """
    all_spans = committed.spans()
    before = {} if since is None else since.partitions
    spans = {
        p: tuple(without(ranges, before[p].ranges)) if p in before else ranges
        for p, ranges in all_spans.items()
    }
    after = 0 if since is None else since.commit_id
    aside = _aside(spark, stream, topic).cache()
    held = _held(spark, stream, topic, aside, after, committed.last).cache()
    try:
        proved = {p: of.ranges for p, of in before.items()}
        old = _counts(aside, proved) if proved else {}
        if any(
            (old.get(p, _NOTHING)["quarantined"], old.get(p, _NOTHING)["distinct"])
            != (of.quarantined, of.quarantined)
            for p, of in before.items()
        ):
            return None
        counts = _counts(held, spans)
        absent = _absent(held, spans, counts)
    finally:
        held.unpersist()
        aside.unpersist()
    given_up = {p: overlap(absent.get(p, []), committed.given_up.get(p, ())) for p in spans}
    absent = {p: without(absent.get(p, []), given_up[p]) for p in spans}
    oldest = broker.first_offsets(topic) if broker is not None else {}
    newest = broker.end_offsets(topic) if broker is not None else {}
    missing: dict[int, list[Span]] = {}
    known_empty: dict[int, list[Span]] = {}
    gone: dict[int, list[Span]] = {}
    for partition, ranges in absent.items():
        # No broker has anything of a partition that is not there.
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
    proofs = []
    for partition in sorted(all_spans.keys() | counts.keys()):
        taken = all_spans.get(partition, ((0, 0),))
        end = committed.ranges.get(partition, taken[-1])[1]
        count = counts.get(partition, _NOTHING)
        lost = missing.get(partition, [])
        of = before.get(partition, _UNPROVED)
        proofs.append(
            PartitionProof(
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
    return proofs


def _aside(spark: SparkSession, stream: Stream, topic: Topic) -> DataFrame:
    """Every (partition, offset) of a topic that is quarantined."""
    aside = quarantine_table.of_topic(spark, topic.name, topic.id).where("replayed_at is null")
    replays = commit_log.commit_ids(spark, stream.table, CommitKind.REPLAY)
    if replays:
        # A replay publishes its records before it marks them in quarantine.
        table = spark.table(f"{CATALOG}.{stream.table}")
        replayed = table.where(
            (F.col("_kafka_topic_id") == topic.id) & F.col("_commit_id").isin(replays)
        )
        aside = aside.join(replayed.select(*_PLACE), _PLACE, "left_anti")
    discarded = F.col("discarded_at").isNotNull().alias("discarded")
    return aside.select(*_PLACE, F.lit(True).alias("aside"), discarded)


def _held(
    spark: SparkSession, stream: Stream, topic: Topic, aside: DataFrame, after: int, last: int
) -> DataFrame:
    """Every (partition, offset) that a table holds of a topic, and whether it is quarantined.

    Commits after ``last`` are left out: a stream may be running. So are those up to ``after``,
    which were proved before.
    """
    in_bronze = spark.table(f"{CATALOG}.{stream.table}").where(F.col("_kafka_topic_id") == topic.id)
    if after:
        # By itself, so that files of earlier commits are not opened.
        in_bronze = in_bronze.where(F.col("_commit_id") > after)
    in_bronze = in_bronze.where(F.coalesce("_commit_id", F.lit(0)) <= last)
    no = F.lit(False)
    return in_bronze.select(*_PLACE, no.alias("aside"), no.alias("discarded")).unionAll(aside)


def _counts(held: DataFrame, spans: Spans) -> dict[int, dict[str, int]]:
    rows = (
        held.withColumn("inside", F.expr(inside(spans)))
        .groupBy("_kafka_partition")
        .agg(
            F.count_if(F.col("inside") & ~F.col("aside")).alias("bronze"),
            F.count_if(F.col("inside") & F.col("aside")).alias("quarantined"),
            F.count_if(F.col("inside") & F.col("discarded")).alias("discarded"),
            # In quarantine they are a running or broken batch's, removed at the next start.
            F.count_if(~F.col("inside") & ~F.col("aside")).alias("outside"),
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
    held: DataFrame, spans: Spans, counts: Mapping[int, Mapping[str, int]]
) -> dict[int, list[Span]]:
    """By partition, the offset ranges inside the committed ones that no table holds."""
    short = {
        partition: ranges
        for partition, ranges in spans.items()
        if counts.get(partition, {}).get("distinct", 0) < size(ranges)
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
    spark = held.sparkSession
    bounds = spark.createDataFrame(ends, "_kafka_partition int, _kafka_offset bigint")
    in_order = Window.partitionBy("_kafka_partition").orderBy("_kafka_offset")
    found = (
        held.where(inside(short))
        .select(*_PLACE)
        .unionAll(bounds)
        .distinct()
        .withColumn("next", F.lead("_kafka_offset").over(in_order))
        .where(F.col("next") > F.col("_kafka_offset") + 1)
        .orderBy(*_PLACE)
    )
    for partition, offset, following in found.toLocalIterator():
        # Between two ranges nothing was committed.
        gaps[partition] += overlap([(offset + 1, following)], short[partition])
    return gaps
