"""One batch, exactly once: staged, its bad records set aside, then published in one commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from spark_ingest import bronze, decode, quarantine, wire_format
from spark_ingest.errors import ConfigurationError, LeaseLost, ServiceUnavailable
from spark_ingest.kafka import Topic
from spark_ingest.lease import Commit, Lease
from spark_ingest.registry import SchemaRegistry
from spark_ingest.schema import TopicSchema, combine
from spark_ingest.session import CATALOG, Jvm
from spark_ingest.sources import Stream

# Bad records come back with the counters, so that Kafka is read once; what could take
# more of the driver's memory than this is read again instead. Each costs its bytes and
# about this much besides, were all of the batch bad.
_CARRIED_BYTES = 512 * 1024 * 1024
_CARRIED_OVERHEAD = 1500
_ID_RETRY_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 60.0
_KAFKA_ROWS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("headers", bronze.HEADERS),
    ]
)


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
    """

    commit: Commit
    rows: int
    quarantined: int
    value_bytes: int
    started_at: datetime
    seconds: float


@dataclass(frozen=True)
class _Counts:
    """What the pass over a batch told."""

    rows: int
    bad: int
    value_bytes: int
    unknown_ids: dict[str, list[int]]
    carried: DataFrame
    carried_count: int


@dataclass(frozen=True)
class Judged:
    """A batch's records, decoded, with what bronze and quarantine need of them.

    Attributes:
        records: Kafka's columns under their bronze names, ``_kafka_value``, and
            ``_verdict``: why bronze cannot take the record, null where it can.
        columns: The table's columns for the good ones, without the metadata.
    """

    records: DataFrame
    columns: dict[str, Column]

    def schema(self) -> StructType:
        """Names and types of ``columns``."""
        return self.records.select(
            *(column.alias(name) for name, column in self.columns.items())
        ).schema


@dataclass
class Schemas:
    """The schemas of one topic as the registry has them, and ids that it does not know.

    Attributes:
        registry: Where they come from.
        stream: Whose.
        unknown_wait: Seconds to keep asking for an id before its records are quarantined.
        wait: Sleeps some seconds; raises when the stream is being stopped.
    """

    registry: SchemaRegistry
    stream: Stream
    unknown_wait: float
    wait: Callable[[float], None]
    _others: dict[str, list[int]] = field(
        default_factory=lambda: {"value": [], "key": []}
    )
    _unknown: dict[int, float] = field(default_factory=dict)

    def value(self) -> TopicSchema:
        """The value schemas, asked for anew: a batch's ids were registered before it began."""
        return self._of("value")

    def key(self) -> TopicSchema | None:
        """The key schemas where the source declares a key."""
        return self._of("key") if self.stream.ingest.key else None

    def learn(self, ids: list[int], part: str) -> bool:
        """Ask for ids that no version of the subject has, for a while.

        Args:
            ids: Schema ids met in records. One that stayed unknown is asked for again after
                a minute, without waiting for it.
            part: ``value`` or ``key``.

        Returns:
            Whether one of them turned out to exist (under another subject): the batch is
            then decoded again.
        """
        now = time.monotonic()
        missing = [
            n
            for n in ids
            if n <= quarantine.MAX_INT
            and now - self._unknown.get(n, -_ASK_AGAIN_SECONDS) >= _ASK_AGAIN_SECONDS
        ]
        patient = any(n not in self._unknown for n in missing)
        deadline = now + self.unknown_wait if patient else now
        found = False
        while missing:
            for number in list(missing):
                if self.registry.schema(number) is not None:
                    self._others[part].append(number)
                    missing.remove(number)
                    found = True
            if not missing or time.monotonic() >= deadline:
                break
            self.wait(_ID_RETRY_SECONDS)
        self._unknown.update(dict.fromkeys(missing, time.monotonic()))
        return found

    def _of(self, part: str) -> TopicSchema:
        writers = self.registry.subject_schemas(f"{self.stream.topic}-{part}")
        have = {writer.id for writer in writers}
        others = [self.registry.schema(n) for n in self._others[part] if n not in have]
        return combine([*writers, *(writer for writer in others if writer is not None)])


class BatchWriter:
    """Writes the batches of one stream under its lease."""

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        topic: Topic,
        lease: Lease,
        schemas: Schemas,
        check_topic: Callable[[], None],
    ) -> None:
        """Bind a stream's batches to its lease.

        Args:
            spark: A session on the lake.
            stream: Whose batches.
            topic: The topic that they come from.
            lease: The right to write the stream's table.
            schemas: The topic's schemas.
            check_topic: Raises where the topic is not the same any more; called between
                reading a batch and publishing it.
        """
        self._spark = spark
        self._jvm = Jvm(spark)
        self._stream = stream
        self._topic = topic
        self._lease = lease
        self._schemas = schemas
        self._check_topic = check_topic

    def write(
        self,
        records: DataFrame,
        number: int,
        starts: Mapping[int, int],
        ends: Mapping[int, int],
    ) -> BatchResult:
        """Take one batch from Kafka's rows to a visible commit.

        Args:
            records: Rows of Spark's Kafka source, with headers.
            number: The commit id that it gets.
            starts: First offset of the batch, by partition.
            ends: Offset behind the last one, by partition.

        Raises:
            LeaseLost: Another writer took the table over; nothing was committed.
            CommitRefused: The table moved meanwhile; nothing was committed.
            ServiceUnavailable: The registry does not answer; nothing was committed.
        """
        began, clock = datetime.now(UTC), time.monotonic()
        commit = Commit(number, self._topic.id, dict(starts), dict(ends))
        size = sum(end - starts.get(partition, 0) for partition, end in ends.items())
        judged = self._judge(records)
        counts = self._stage(judged, commit, size, began)
        while sum(
            self._schemas.learn(ids, part) for part, ids in counts.unknown_ids.items()
        ):
            self._lease.unstage()
            judged = self._judge(records)
            counts = self._stage(judged, commit, size, began)
        self._check_topic()
        if counts.bad:
            bad = counts.carried
            if counts.carried_count < counts.bad:
                bad = judged.records.where(F.col("_verdict").isNotNull()).select(
                    *quarantine.rows("_verdict", F.lit(began))
                )
            self._lease.check()
            quarantine.append(bad)
        try:
            self._lease.publish()
        except LeaseLost:
            # Whoever has the table now took these records: they are not to be there twice.
            quarantine.remove_batch(self._spark, self._topic, began)
            raise
        return BatchResult(
            commit,
            counts.rows - counts.bad,
            counts.bad,
            counts.value_bytes,
            began,
            time.monotonic() - clock,
        )

    def _judge(self, records: DataFrame) -> Judged:
        value = self._schemas.value()
        if not value.writers and not value.misfits:
            # The table was made from a schema: that there is none now is no record's fault.
            raise ServiceUnavailable(
                f"{self._schemas.registry.url} has no schema under {self._stream.topic}-value "
                "any more: bring the subject back, or mend registry.url in profiles/ingest.yml"
            )
        judged = judge(records, self._topic.id, value, self._schemas.key())
        wanted = bronze.table_columns(judged.schema())
        if bronze.missing_columns(self._spark, self._stream.table, wanted):
            bronze.evolve(self._jvm, self._stream.table, wanted)
        return judged

    def _stage(
        self, judged: Judged, commit: Commit, size: int, began: datetime
    ) -> _Counts:
        bad = F.col("_verdict").isNotNull()
        each = _CARRIED_BYTES // max(size, 1) - _CARRIED_OVERHEAD
        length = F.coalesce(F.length("_kafka_value"), F.lit(0))
        whole = (
            length + F.coalesce(F.length("_kafka_key"), F.lit(0)) + _headers_length()
        )
        carried = F.struct(*quarantine.rows("_verdict", F.lit(began)))
        parts = ["value", "key"] if self._stream.ingest.key else ["value"]
        observation = Observation()
        observed = judged.records.observe(
            observation,
            F.count(F.lit(1)),
            F.count_if(bad),
            F.coalesce(F.sum(length), F.lit(0)),
            F.collect_list(F.when(bad & (whole <= each), carried)),
            *(F.collect_set(quarantine.unknown_id(part)) for part in parts),
        )
        self._lease.stage(
            self._table_rows(observed.where(~bad), judged.columns, commit, began),
            commit,
        )
        # The JVM's own row: the bad records need not pass through Python.
        told: Any = observation._jo
        row = told.getRow()
        rows = row.getSeq(3)
        return _Counts(
            rows=row.getLong(0),
            bad=row.getLong(1),
            value_bytes=row.getLong(2),
            unknown_ids={
                part: _numbers(row.getSeq(4 + i)) for i, part in enumerate(parts)
            },
            carried=self._jvm.dataframe(rows, quarantine.COLUMNS),
            carried_count=rows.size(),
        )

    def _table_rows(
        self,
        good: DataFrame,
        columns: dict[str, Column],
        commit: Commit,
        began: datetime,
    ) -> DataFrame:
        """The good records as the table's columns; those that no writer has are null."""
        have = {
            name: F.col(name) for name in bronze.METADATA.names if name in good.columns
        }
        have |= columns
        types = {
            f.name: f.dataType
            for f in good.select(
                *(c.alias(n) for n, c in columns.items())
            ).schema.fields
        }
        have["_schema_id"] = F.col("_value_schema_id")
        have["_is_tombstone"] = F.col("_kafka_value").isNull()
        have["_ingested_at"] = F.lit(began)
        have["_commit_id"] = F.lit(commit.id)
        table = self._spark.table(f"{CATALOG}.{self._stream.table}").schema.fields
        return good.select(
            *(
                bronze.conform(
                    have.get(f.name, F.lit(None)), types.get(f.name), f.dataType
                ).alias(f.name)
                for f in table
            )
        )


def judge(
    records: DataFrame, topic_id: str, value: TopicSchema, key: TopicSchema | None
) -> Judged:
    """Decode every record and say of each whether bronze can take it.

    Args:
        records: Rows of Spark's Kafka source, with headers.
        topic_id: Kafka's UUID of their topic.
        value: Schemas of the values.
        key: Schemas of the keys where they are decoded.
    """
    taken = records.select(
        F.col("key").alias("_kafka_key"),
        F.col("value").alias("_kafka_value"),
        F.col("topic").alias("_kafka_topic"),
        F.lit(topic_id).alias("_kafka_topic_id"),
        F.col("partition").alias("_kafka_partition"),
        F.col("offset").alias("_kafka_offset"),
        F.col("timestamp").alias("_kafka_timestamp"),
        F.col("headers").alias("_kafka_headers"),
    )
    taken, verdict = _decode(taken, "value", value)
    columns = decode.fields("_value", value) if value.reader is not None else {}
    bronze.refuse_reserved(columns)
    if key is not None:
        taken, of_key = _decode(taken, "key", key)
        verdict = F.coalesce(verdict, of_key)
        if key.reader is not None:
            columns[bronze.KEY] = decode.whole("_key", key)
    return Judged(taken.withColumn("_verdict", verdict), columns)


def planned_columns(spark: SparkSession, schemas: Schemas) -> StructType:
    """The columns that a stream's table needs for the schemas registered now.

    Raises:
        ConfigurationError: No usable value schema is registered.
        ServiceUnavailable: The registry does not answer.
    """
    stream, value = schemas.stream, schemas.value()
    if value.reader is None:
        reasons = "; ".join(value.misfits.values()) or "none is registered"
        raise ConfigurationError(
            f"source {stream.name}: no usable schema under subject {stream.topic}-value "
            f"({reasons}): let the producer register one first (`sandbox up` does for the sandbox)"
        )
    nothing = spark.createDataFrame([], _KAFKA_ROWS)
    return bronze.table_columns(judge(nothing, "", value, schemas.key()).schema())


def _decode(
    taken: DataFrame, part: str, schema: TopicSchema
) -> tuple[DataFrame, Column]:
    """Decode ``_kafka_<part>`` into ``_<part>``; also the verdict on it."""
    framed = f"_kafka_{part}"
    number = wire_format.schema_id(framed, schema.writers)
    taken = taken.withColumn(f"_{part}_schema_id", number)
    if schema.reader is not None:
        taken = taken.withColumn(f"_{part}", decode.decoded(framed, schema))
    return taken, quarantine.verdict(part, schema)


def _headers_length() -> Column:
    """Bytes of a record's headers."""
    each = F.aggregate(
        "_kafka_headers",
        F.lit(0),
        lambda sum_, header: (
            sum_
            + F.length(header["key"])
            + F.coalesce(F.length(header["value"]), F.lit(0))
        ),
    )
    return F.coalesce(each, F.lit(0))


def _numbers(sequence: Any) -> list[int]:
    return [sequence.apply(i) for i in range(sequence.size())]
