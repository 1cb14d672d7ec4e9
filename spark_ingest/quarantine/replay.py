"""Replay: decode quarantined records again, and land those that are valid now.

A record keeps its position, time, key and headers. It is published first, also while the stream is
running, then marked in quarantine. If a replay is killed in between, the next one finds the record
in bronze by its position and only marks it. Concurrent replays create no duplicates: each checks
for records published by others before it publishes.
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

# Records that are decoded and published together; cached in the session's memory meanwhile.
CHUNK_ROWS = 20_000
_CHUNK_BYTES = 64 * 1024 * 1024
_PLACE = ["_kafka_partition", "_kafka_offset"]
_REASON = ["stage", "error_class", "error_message"]


@dataclass
class Replayed:
    """The result of a replay of one stream, or of a dry run.

    Attributes:
        landed: Records landed in bronze.
        existing: Records that were in bronze already, and are marked now.
        remaining: Records that are still invalid, by current error class.
        commits: Ids of the commits of the landed records.
    """

    stream: str
    landed: int = 0
    existing: int = 0
    remaining: Counter[str] = field(default_factory=Counter)
    commits: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Chunk:
    """Quarantined records of one partition that are replayed together."""

    topic_id: str
    partition: int
    first: int
    last: int

    @property
    def range(self) -> Ranges:
        """The offset range of the partition."""
        return {self.partition: (self.first, self.last + 1)}

    def contains(self) -> Column:
        """Whether the offset of a row of bronze or quarantine is in the chunk."""
        return (F.col("_kafka_topic_id") == self.topic_id) & F.expr(within(self.range))


def replay(
    services: Services, stream: Stream, choice: Choice, *, dry_run: bool = False
) -> Replayed:
    """Decode a stream's quarantined records again and land those that are valid now.

    Invalid records stay, with the current reason. The stream's table must exist; ``dry_run``
    changes nothing.

    Raises:
        MillraceError: The table has no commit.
        ServiceUnavailable: The registry does not answer.
        ConfigurationError: The table is incompatible with the topic's schema.
        CommitRefused: The running stream committed first at each attempt.
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
        """The selected committed records, in chunks of bounded size."""
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
        """Whether a record's offset was committed, by the stream or by a backfill.

        Records of running batches are not replayed.
        """
        found = commit_log.committed(self._spark, self._stream)
        if not found:
            raise MillraceError(
                f"{self._stream.table} has no commit yet, so no record of {self._stream.topic} "
                "can be replayed: land its records with `spark-ingest run` first"
            )
        each = [
            f"(_kafka_topic_id = '{topic_id}' and {inside(committed.spans())})"
            for topic_id, committed in found.items()
        ]
        return F.expr(" or ".join(each))

    def _replay(self, chunk: _Chunk) -> None:
        checked = position_of(self._spark, self._stream).commit_id
        rows = self._candidates().where(chunk.contains()).dropDuplicates(_PLACE)
        existing = self._in_bronze(chunk).withColumn("is_existing", F.lit(True))
        # Checkpointed: a plan that still reads the table fails after a schema change.
        known = rows.join(existing, _PLACE, "left").localCheckpoint()
        waiting = known.where("is_existing is null")
        with self._validated(waiting, chunk) as validated:
            self._land(chunk, checked, known, validated)

    def _in_bronze(self, chunk: _Chunk) -> DataFrame:
        """The chunk's positions that are in bronze."""
        table = self._spark.table(f"{CATALOG}.{self._stream.table}")
        return table.where(chunk.contains()).select(*_PLACE).distinct()

    @contextmanager
    def _validated(self, waiting: DataFrame, chunk: _Chunk) -> Iterator[Validated]:
        """The records, validated with the current schemas; cached, to decode them once."""
        records = waiting.select(
            F.col("_kafka_key").alias("key"),
            F.col("_kafka_value").alias("value"),
            F.col("_kafka_topic").alias("topic"),
            F.col("_kafka_partition").alias("partition"),
            F.col("_kafka_offset").alias("offset"),
            F.col("_kafka_timestamp").alias("timestamp"),
            F.col("_kafka_headers").alias("headers"),
            # Only records whose timestamp is out of Spark's range have none; they stay invalid.
            F.when(F.col("_kafka_timestamp").isNull(), F.struct(*_REASON)).alias(REFUSED),
        )
        parts = ["value", "key"] if self._stream.ingest.key else ["value"]
        while True:
            validated = validate_with_registry(records, chunk.topic_id, self._schemas)
            with _cached(validated.records) as cached:
                unknown = [F.collect_set(unknown_id(part)) for part in parts]
                ids = cached.agg(*unknown).first()
                learned = [
                    self._schemas.learn(list(ids[i]) if ids else [], part)
                    for i, part in enumerate(parts)
                ]
                if not any(learned):
                    yield Validated(cached, validated.columns, validated.value, validated.key)
                    return

    def _land(self, chunk: _Chunk, checked: int, known: DataFrame, validated: Validated) -> None:
        good = validated.records.where("_error is null")
        bad = validated.records.where("_error is not null").select(
            *quarantine_table.rows("_error", F.current_timestamp())
        )
        with _cached(bad.select(*_PLACE, *_REASON)) as still_bad:
            classes = still_bad.groupBy("error_class").count().collect()
            self._done.remaining.update({row[0]: row[1] for row in classes})
            existing, waiting = known.where("is_existing").count(), good.count()
            if self._dry_run:
                self._done.existing += existing
                self._done.landed += waiting
                return
            landed = 0
            if waiting:
                grow_table(self._spark, self._stream.table, validated.schema())
                landed = self._publish(chunk, checked, good, validated)
            self._done.landed += landed
            self._done.existing += existing + waiting - landed
            self._mark(chunk, known, good, still_bad)

    def _publish(self, chunk: _Chunk, checked: int, good: DataFrame, validated: Validated) -> int:
        """Publish the valid records that are not in bronze; return their number."""
        began, clock = datetime.now(UTC), time.monotonic()
        jvm, counted = Jvm(self._spark), 0

        def make(here: Position) -> tuple[DataFrame, Commit] | None:
            nonlocal counted
            new = good
            # Commits of the stream have later offsets; those of another replay may have these.
            others = own_snapshots(jvm, self._stream.table, after=checked)
            if any(each.commit.kind is not CommitKind.STREAM for each in others):
                now = self._in_bronze(chunk)
                new = good.join(now, _PLACE, "left_anti").localCheckpoint()
            counted = new.count()
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
            return table_rows(new, validated.columns, table, commit.id, began), commit

        commit = commit_beside(self._spark, self._stream, self._uuid, make)
        if commit is None:
            return 0
        self._done.commits.append(commit.id)
        result = BatchResult(commit, counted, -counted, 0, began, time.monotonic() - clock)
        commit_log.log_commit(self._spark, self._stream, result)
        return counted

    def _mark(self, chunk: _Chunk, known: DataFrame, good: DataFrame, still_bad: DataFrame) -> None:
        """Mark records that are in bronze as replayed, and update the reasons of the others."""
        in_bronze = known.where("is_existing").select(*_PLACE).unionAll(good.select(*_PLACE))
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
    """Cache a frame for the duration of the block."""
    cached = frame.cache()
    try:
        yield cached
    finally:
        cached.unpersist()
