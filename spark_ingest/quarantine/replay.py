"""Quarantined records decoded again: those that bronze can take now are taken, where they were.

A record keeps its position, time, key and headers. It is published beside the running
stream, then marked in quarantine, so a replay that was killed has at worst published what
is not marked yet: the next one finds it in bronze by its position and marks it. Two replays
at once cannot double a row either: what the other published is looked for again before
this one publishes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import BatchResult, Commit, CommitKind, own_snapshots
from spark_ingest.commits.offsets import Ranges, inside, within
from spark_ingest.commits.resume import Position, position_of
from spark_ingest.commits.table_identity import uuid_of
from spark_ingest.errors import MillraceError
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.quarantine.choice import Choice
from spark_ingest.records.bronze_rows import grow_table, table_rows, validate_with_registry
from spark_ingest.records.topic_schemas import Schemas
from spark_ingest.records.validation import REFUSED, Validated, unknown_id
from spark_ingest.sources import Stream
from spark_ingest.streaming.services import Services
from spark_ingest.streaming.side_commit import commit_beside

# What is decoded and published at once: held in the session's memory meanwhile.
CHUNK_ROWS = 20_000
_CHUNK_BYTES = 64 * 1024 * 1024
_PLACE = ["_kafka_partition", "_kafka_offset"]
_REASON = ["stage", "error_class", "error_message"]


@dataclass
class Replayed:
    """What a replay did to one stream, or would do.

    Attributes:
        taken: Records that bronze took.
        held: Records that were in bronze already, and are marked now.
        left: Records that bronze still cannot take, by their error class of today.
        commits: The commits that took them.
    """

    stream: str
    taken: int = 0
    held: int = 0
    left: Counter[str] = field(default_factory=Counter)
    commits: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Chunk:
    """Quarantined records of one partition of one topic that are replayed at once."""

    topic_id: str
    partition: int
    first: int
    last: int

    @property
    def range(self) -> Ranges:
        """Its offsets."""
        return {self.partition: (self.first, self.last + 1)}

    def holds(self) -> Column:
        """Whether a row of bronze or quarantine is at one of its offsets."""
        return (F.col("_kafka_topic_id") == self.topic_id) & F.expr(within(self.range))


def replay(
    services: Services, stream: Stream, choice: Choice, *, dry_run: bool = False
) -> Replayed:
    """Decode a stream's quarantined records again and land those that are good now.

    Those that are not stay, with the reason of today. The stream's table must exist;
    ``dry_run`` only shows what would be done.

    Raises:
        MillraceError: Nothing was ever committed to the table.
        ServiceUnavailable: The registry does not answer.
        ConfigurationError: The table cannot take the topic's schema.
        CommitRefused: The running stream was faster each time.
    """
    return _Replay(services, stream, choice, dry_run).run()


class _Replay:
    def __init__(self, services: Services, stream: Stream, choice: Choice, dry_run: bool) -> None:
        self._services = services
        self._spark = services.spark
        self._stream = stream
        self._choice = choice
        self._dry_run = dry_run
        self._schemas = Schemas(services.registry, stream, 0, time.sleep)
        self._done = Replayed(stream.name)
        self._uuid = uuid_of(Jvm(services.spark), stream.table)

    def run(self) -> Replayed:
        for chunk in self._chunks():
            self._replay(chunk)
        return self._done

    def _candidates(self) -> DataFrame:
        rows = quarantine_table.of_topic(self._spark, self._stream.topic)
        return self._choice.of(rows.where("replayed_at is null"))

    def _chunks(self) -> list[_Chunk]:
        """The chosen records that were committed, in pieces of bounded size."""
        size = F.coalesce(F.length("_kafka_value"), F.lit(0)) + F.coalesce(
            F.length("_kafka_key"), F.lit(0)
        )
        place = ["_kafka_topic_id", "_kafka_partition"]
        in_order = Window.partitionBy(*place).orderBy("_kafka_offset")
        so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        found = (
            self._candidates()
            .where(self._is_committed())
            .select(*place, "_kafka_offset", size.alias("size"))
            .withColumn("rows_before", F.row_number().over(in_order) - 1)
            .withColumn("bytes_until", F.sum("size").over(so_far))
            .groupBy(
                *place,
                F.floor(F.col("rows_before") / CHUNK_ROWS).alias("by_rows"),
                F.floor(F.col("bytes_until") / _CHUNK_BYTES).alias("by_bytes"),
            )
            .agg(F.min("_kafka_offset").alias("first"), F.max("_kafka_offset"))
            .orderBy(*place, "first")
            .collect()
        )
        return [_Chunk(row[0], row[1], row[4], row[5]) for row in found]

    def _is_committed(self) -> Column:
        """Whether a record's batch was published: one that is under way takes care of itself.

        What lies before the stream's first offset is a backfill's, committed piece by piece.
        """
        found = commit_log.committed(self._spark, self._stream)
        if not found:
            raise MillraceError(
                f"{self._stream.table} has no commit yet, so nothing of {self._stream.topic} "
                "can be replayed: let `spark-ingest run` take its records first"
            )
        each = [
            f"(_kafka_topic_id = '{topic_id}' and {inside(committed.spans())})"
            for topic_id, committed in found.items()
        ]
        return F.expr(" or ".join(each))

    def _replay(self, chunk: _Chunk) -> None:
        checked = position_of(self._spark, self._stream).commit_id
        rows = self._candidates().where(chunk.holds()).dropDuplicates(_PLACE)
        held = self._in_bronze(chunk).withColumn("is_held", F.lit(True))
        # Without their origin: a plan that still reads the table fails once it has grown.
        known = rows.join(held, _PLACE, "left").localCheckpoint()
        waiting = known.where("is_held is null")
        with self._validated(waiting, chunk) as validated:
            self._land(chunk, checked, known, validated)

    def _in_bronze(self, chunk: _Chunk) -> DataFrame:
        """The chunk's positions that bronze holds now."""
        table = self._spark.table(f"{CATALOG}.{self._stream.table}")
        return table.where(chunk.holds()).select(*_PLACE).distinct()

    @contextmanager
    def _validated(self, waiting: DataFrame, chunk: _Chunk) -> Iterator[Validated]:
        """The records as they validate now, cached so that they are decoded once."""
        records = waiting.select(
            F.col("_kafka_key").alias("key"),
            F.col("_kafka_value").alias("value"),
            F.col("_kafka_topic").alias("topic"),
            F.col("_kafka_partition").alias("partition"),
            F.col("_kafka_offset").alias("offset"),
            F.col("_kafka_timestamp").alias("timestamp"),
            F.col("_kafka_headers").alias("headers"),
            # A record whose time Spark cannot hold is never good, and no other has none.
            F.when(F.col("_kafka_timestamp").isNull(), F.struct(*_REASON)).alias(REFUSED),
        )
        parts = ["value", "key"] if self._stream.ingest.key else ["value"]
        while True:
            validated = validate_with_registry(records, chunk.topic_id, self._schemas)
            with _cached(validated.records) as kept:
                unknown = [F.collect_set(unknown_id(part)) for part in parts]
                ids = kept.agg(*unknown).first()
                learned = [
                    self._schemas.learn(list(ids[i]) if ids else [], part)
                    for i, part in enumerate(parts)
                ]
                if not any(learned):
                    yield Validated(kept, validated.columns, validated.value, validated.key)
                    return

    def _land(self, chunk: _Chunk, checked: int, known: DataFrame, validated: Validated) -> None:
        good = validated.records.where("_error is null")
        bad = validated.records.where("_error is not null").select(
            *quarantine_table.rows("_error", F.current_timestamp())
        )
        with _cached(bad.select(*_PLACE, *_REASON)) as still_bad:
            classes = still_bad.groupBy("error_class").count().collect()
            self._done.left.update({row[0]: row[1] for row in classes})
            held, waiting = known.where("is_held").count(), good.count()
            if self._dry_run:
                self._done.held += held
                self._done.taken += waiting
                return
            taken = 0
            if waiting:
                grow_table(self._spark, self._stream.table, validated.schema())
                taken = self._publish(chunk, checked, good, validated)
            self._done.taken += taken
            self._done.held += held + waiting - taken
            self._mark(chunk, known, good, still_bad)

    def _publish(self, chunk: _Chunk, checked: int, good: DataFrame, validated: Validated) -> int:
        """Land good records that bronze does not hold; how many these were."""
        began, clock = datetime.now(UTC), time.monotonic()
        jvm, counted = Jvm(self._spark), 0

        def make(here: Position) -> tuple[DataFrame, Commit] | None:
            nonlocal counted
            fresh = good
            # The stream's own commits are of later offsets; another replay's may be these.
            others = own_snapshots(jvm, self._stream.table, after=checked)
            if any(each.commit.kind is not CommitKind.STREAM for each in others):
                now = self._in_bronze(chunk)
                fresh = good.join(now, _PLACE, "left_anti").localCheckpoint()
            counted = fresh.count()
            if not counted:
                return None
            commit = Commit(
                here.commit_id + 1,
                str(here.topic_id),
                {},
                {},
                CommitKind.REPLAY,
                resume=here.offsets,
            )
            table = self._stream.table
            return table_rows(fresh, validated.columns, table, commit.id, began), commit

        commit = commit_beside(self._spark, self._stream, self._uuid, make)
        if commit is None:
            return 0
        self._done.commits.append(commit.id)
        result = BatchResult(commit, counted, -counted, 0, began, time.monotonic() - clock)
        commit_log.log_commit(self._spark, self._stream, result)
        return counted

    def _mark(self, chunk: _Chunk, known: DataFrame, good: DataFrame, still_bad: DataFrame) -> None:
        """Mark what is in bronze now, and bring the reasons of the others up to date."""
        in_bronze = known.where("is_held").select(*_PLACE).unionAll(good.select(*_PLACE))
        old = known.select(*_PLACE, *(F.col(name).alias(f"old_{name}") for name in _REASON))
        changed = still_bad.join(old, _PLACE).where(
            " or ".join(f"{name} is distinct from old_{name}" for name in _REASON)
        )
        marks = in_bronze.select(
            *_PLACE, F.lit(True).alias("is_in_bronze"), *map(_no_text, _REASON)
        ).unionAll(changed.select(*_PLACE, F.lit(False), *_REASON))
        where = [
            f"quarantine._kafka_topic = '{self._stream.topic}'",
            f"quarantine._kafka_topic_id = '{chunk.topic_id}'",
            within(chunk.range, of="quarantine"),
            "quarantine.replayed_at is null",
        ]
        reasons = {name: F.col(f"new_{name}") for name in _REASON}
        quarantine_table.merge(
            marks,
            _PLACE,
            where,
            lambda merge: (
                merge.whenMatched(F.col("new_is_in_bronze"))
                .update({"replayed_at": F.lit(datetime.now(UTC))})
                .whenMatched()
                .update(reasons)
            ),
        )


def _no_text(name: str) -> Column:
    return F.lit(None).cast("string").alias(name)


@contextmanager
def _cached(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame whose rows are computed once, until the block ends."""
    kept = frame.cache()
    try:
        yield kept
    finally:
        kept.unpersist()
