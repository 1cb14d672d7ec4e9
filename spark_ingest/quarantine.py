"""Records that bronze cannot take: kept with their bytes, position and the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
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

from spark_ingest import avro_check, bronze, decode
from spark_ingest.kafka import Topic
from spark_ingest.schema import TopicSchema
from spark_ingest.session import CATALOG, JAVA_ERRORS, Jvm
from spark_ingest.wire_format import Part

TABLE = f"{bronze.SCHEMA}.quarantine"
COLUMNS = StructType(
    [
        StructField("_kafka_topic", StringType()),
        StructField("_kafka_topic_id", StringType()),
        StructField("_kafka_partition", IntegerType()),
        StructField("_kafka_offset", LongType()),
        StructField("_kafka_timestamp", TimestampType()),
        StructField("_kafka_key", BinaryType()),
        StructField("_kafka_value", BinaryType()),
        StructField("_kafka_headers", bronze.HEADERS),
        StructField("_schema_id", IntegerType()),
        StructField("stage", StringType()),
        StructField("error_class", StringType()),
        StructField("error_message", StringType()),
        StructField("_ingested_at", TimestampType()),
        StructField("replayed_at", TimestampType()),
        StructField("discarded_at", TimestampType()),
        StructField("discard_reason", StringType()),
    ]
)
# Schema ids are signed 32-bit numbers in the registry's interface.
MAX_INT = 2**31 - 1
_UNKNOWN = "unknown_id"
_UNDECODABLE = "undecodable"
_LEFT_OVER = "left_over_bytes"
# An update rewrites files; streams go on adding others meanwhile, which is no conflict.
_PROPERTIES = {
    f"write.{verb}.isolation-level": "snapshot"
    for verb in ("delete", "update", "merge")
}
_ATTEMPTS = 20
_PAUSE_SECONDS = 0.3
# What Iceberg calls it when two rewrites of the same files meet.
_CONFLICTS = ("ValidationException", "CommitFailedException", "conflicting")


def create(spark: SparkSession) -> bool:
    """Make the quarantine table where it is missing; whether it was made."""
    # By topic, so that streams appending and cleaning up at once do not meet in one file.
    made = bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "_kafka_topic",
        description="Kafka records that bronze could not take, with their bytes and the reason.",
    )
    have = Jvm(spark).iceberg_table(TABLE).properties()
    missing = {k: v for k, v in _PROPERTIES.items() if have.get(k) != v}
    if missing:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in missing.items())
        spark.sql(f"alter table {CATALOG}.{TABLE} set tblproperties ({listed})")
    return made


def verdict(part: Part, schema: TopicSchema) -> Column:
    """Why a record's value or key cannot be taken; null where it can.

    Args:
        part: ``value`` or ``key``: judges ``_kafka_<part>`` (a null in it is good: a tombstone,
            or no key), with its ``_<part>_schema_id`` and the decoded ``_<part>``.
        schema: The topic's schemas for that part.

    Returns:
        struct<stage: string, error_class: string, error_message: string>.
    """
    framed, schema_id = f"_kafka_{part}", F.col(f"_{part}_schema_id")
    number, size = schema_id.cast("string"), F.length(framed).cast("string")
    ids = [*schema.writers, *schema.misfits]
    undecodable = ~decode.is_good(part, schema) if schema.usable else F.lit(True)

    def reason(stage: str, error_class: str, *message: Column | str) -> Column:
        texts = [F.lit(text) if isinstance(text, str) else text for text in message]
        return F.struct(
            F.lit(stage).alias("stage"),
            F.lit(_error_class(part, error_class)).alias("error_class"),
            F.concat(*texts).alias("error_message"),
        )

    framing = schema.framing
    judged = F.when(F.col(framed).isNull(), F.lit(None))
    if framing.has_ids:
        judged = judged.when(
            schema_id.isNull(),
            reason(
                "framing",
                "not_framed",
                f"{part} of ",
                size,
                f" bytes has no {framing.title}",
            ),
        )
    for misfit, why in schema.misfits.items():
        text = f"{part} schema {misfit} does not fit the table: {why}"
        judged = judged.when(
            framing.has_schema(part, misfit), reason("schema", "incompatible", text)
        )
    if framing.has_ids:
        judged = judged.when(
            ~schema_id.isin(ids) if ids else F.lit(True),
            reason(
                "schema", _UNKNOWN, f"{part} schema ", number, " is not in the registry"
            ),
        )
    problem = F.col(f"_{part}_problem")
    if schema.readings:
        place = F.substring(problem, 2, 10)
        judged = judged.when(
            F.startswith(problem, F.lit(avro_check.LEFT_OVER)),
            reason(
                "decode",
                _LEFT_OVER,
                f"{part} of ",
                size,
                " bytes: its schema reads to byte ",
                place,
                ", the others are left over",
            ),
        )
    if schema.readings or framing.format == "json":
        whose: list[Column | str] = (
            [f"{part} schema ", number] if framing.has_ids else [part]
        )
        judged = judged.when(
            problem.isNotNull(),
            reason("decode", _UNDECODABLE, *whose, ": ", problem),
        )
    said = f" bytes is not what the source's {framing.name} says"
    if schema.readings:
        said = (
            " bytes is more than Spark's decoder takes: see org.apache.avro.limits in "
            "profiles/spark-defaults.conf"
        )
    return judged.when(
        undecodable, reason("decode", _UNDECODABLE, f"{part} of ", size, said)
    )


def size_verdict(limit: int) -> Column:
    """Why a record is too long to be taken, like :func:`verdict`; null where it is not.

    Args:
        limit: Most bytes of a value, and of a key.
    """
    judged = F.lit(None)
    for part in ("key", "value"):
        size = F.length(f"_kafka_{part}")
        text = F.concat(
            F.lit(f"{part} of "),
            size.cast("string"),
            F.lit(f" bytes: max_value_bytes is {limit}"),
        )
        why = F.struct(
            F.lit("size").alias("stage"),
            F.lit(_error_class(part, "oversized")).alias("error_class"),
            text.alias("error_message"),
        )
        judged = F.when(size > limit, why).otherwise(judged)
    return judged


def unknown_id(part: str) -> Column:
    """The schema id of a record that was judged to have one the registry does not know."""
    is_unknown = F.col("_verdict")["error_class"] == _error_class(part, _UNKNOWN)
    return F.when(is_unknown, F.col(f"_{part}_schema_id"))


def rows(judged: str, ingested_at: Column) -> list[Column]:
    """The quarantine columns of a judged record, in table order.

    Args:
        judged: The column with the verdict.
        ingested_at: When the batch was taken.
    """
    special = {
        "_schema_id": F.when(
            F.col("_value_schema_id") <= MAX_INT, F.col("_value_schema_id")
        ),
        "stage": F.col(judged)["stage"],
        "error_class": F.col(judged)["error_class"],
        "error_message": F.col(judged)["error_message"],
        "_ingested_at": ingested_at,
    }
    later = ("replayed_at", "discarded_at", "discard_reason")
    return [
        special.get(f.name, F.lit(None) if f.name in later else F.col(f.name))
        .cast(f.dataType)
        .alias(f.name)
        for f in COLUMNS.fields
    ]


def append(bad: DataFrame, many: bool = False) -> None:
    """Add rows of the quarantine's columns, in one commit.

    Args:
        bad: The rows.
        many: Whether they are worth a file of each task.
    """
    (bad if many else bad.coalesce(1)).writeTo(f"{CATALOG}.{TABLE}").append()


def remove_uncommitted(
    spark: SparkSession, topic: Topic, committed: Mapping[int, int]
) -> None:
    """Remove what a batch left that never committed: rows at or beyond the offsets.

    What was replayed goes too: it was in a table that is gone, since one that stands there
    takes nothing from beyond its offsets.

    Args:
        spark: A session on the lake.
        topic: Whose rows; those of an earlier topic of the same name stay.
        committed: By partition, the first offset that is not committed; 0 where missing.
    """
    beyond = " or ".join(
        f"(_kafka_partition = {p} and _kafka_offset >= {committed.get(p, 0)})"
        for p in topic.partitions
    )
    where = (
        f"_kafka_topic = '{topic.name}' and _kafka_topic_id = '{topic.id}' "
        f"and ({beyond})"
    )
    # A delete commits even when it removes nothing.
    if spark.table(f"{CATALOG}.{TABLE}").where(where).limit(1).count():
        statement = f"delete from {CATALOG}.{TABLE} where {where}"
        rewrite(lambda: spark.sql(statement))


def remove_batch(spark: SparkSession, topic: Topic, ingested_at: datetime) -> None:
    """Remove what one batch appended.

    Args:
        spark: A session on the lake.
        topic: The batch's topic.
        ingested_at: When the batch began: its rows' ``_ingested_at``.
    """
    began = f"timestamp '{ingested_at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC'"
    statement = (
        f"delete from {CATALOG}.{TABLE} where _kafka_topic = '{topic.name}' "
        f"and _kafka_topic_id = '{topic.id}' and _ingested_at = {began}"
    )
    rewrite(lambda: spark.sql(statement))


def of_topic(spark: SparkSession, name: str, topic_id: str | None = None) -> DataFrame:
    """The rows of one topic, or of all topics that ever had its name."""
    rows = spark.table(f"{CATALOG}.{TABLE}").where(F.col("_kafka_topic") == name)
    return (
        rows if topic_id is None else rows.where(F.col("_kafka_topic_id") == topic_id)
    )


def rewrite(change: Callable[[], object]) -> None:
    """Delete or update rows, again where others rewrote the same files meanwhile.

    Args:
        change: Does it; plans anew each time.
    """
    for left in range(_ATTEMPTS - 1, -1, -1):
        try:
            change()
            return
        except JAVA_ERRORS as error:
            if not left or not any(word in str(error) for word in _CONFLICTS):
                raise
        time.sleep(_PAUSE_SECONDS)


def _error_class(part: str, error_class: str) -> str:
    return error_class if part == "value" else f"{part}_{error_class}"
