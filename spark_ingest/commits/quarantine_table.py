"""The quarantine table: rejected records with their bytes, position and the reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, MergeIntoWriter, SparkSession
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

from spark_ingest.commits.committed import Commit
from spark_ingest.commits.offsets import beyond, within
from spark_ingest.connect.broker import Topic
from spark_ingest.connect.registry import LARGEST_ID
from spark_ingest.lake import bronze, table_change
from spark_ingest.lake.jvm import CATALOG, Jvm

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
# An update rewrites files while streams append others, which is no conflict.
_PROPERTIES = {
    f"write.{verb}.isolation-level": "snapshot" for verb in ("delete", "update", "merge")
}


def create(spark: SparkSession) -> bool:
    """Create the quarantine table if it is missing; whether it was created."""
    # Partitioned by topic, so that concurrent appends and deletes of streams do not conflict.
    is_new = bronze.create_table(
        spark,
        TABLE,
        COLUMNS,
        "_kafka_topic",
        description="Rejected Kafka records, with their bytes and the reason.",
    )
    have = Jvm(spark).iceberg_table(TABLE).properties()
    missing = {k: v for k, v in _PROPERTIES.items() if have.get(k) != v}
    if missing:
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in missing.items())
        spark.sql(f"alter table {CATALOG}.{TABLE} set tblproperties ({listed})")
    return is_new


def rows(error: str, ingested_at: Column) -> list[Column]:
    """The quarantine columns of a bad record, in table order.

    ``error`` is the column with the reason, ``ingested_at`` the start of the batch.
    """
    special = {
        "_schema_id": F.when(F.col("_value_schema_id") <= LARGEST_ID, F.col("_value_schema_id")),
        "stage": F.col(error)["stage"],
        "error_class": F.col(error)["error_class"],
        "error_message": F.col(error)["error_message"],
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
    """Append rows with the columns of quarantine, in one commit.

    With ``many``, each task writes a file; otherwise there is a single file.
    """
    (bad if many else bad.coalesce(1)).writeTo(f"{CATALOG}.{TABLE}").append()


def uncommitted(
    spark: SparkSession, topic: Topic, committed: Mapping[int, int]
) -> tuple[list[int], bool]:
    """Find uncommitted batches of a topic in quarantine.

    Rows of a previous topic of the same name do not count; ``committed`` has the first
    uncommitted offset by partition, 0 if missing.

    Returns:
        The batches with rows at or beyond the committed offsets, each by its start in
        microseconds since 1970, and whether earlier rows exist that were not replayed.
    """
    is_beyond = F.expr(beyond(committed))
    is_before = ~is_beyond & F.col("replayed_at").isNull()
    started = F.unix_micros("_ingested_at")
    row = (
        of_topic(spark, topic.name, topic.id)
        .agg(F.collect_set(F.when(is_beyond, started)), F.count_if(is_before))
        .first()
    )
    return ([], False) if row is None else (sorted(row[0]), row[1] > 0)


def remove_uncommitted(
    spark: SparkSession, topic: Topic, committed: Mapping[int, int], batches: Collection[int]
) -> None:
    """Remove the rows of uncommitted batches, which are at or beyond the committed offsets.

    This includes replayed rows: they belong to a dropped table, since the current one has
    nothing beyond its offsets. Rows of a previous topic of the same name stay. ``committed`` has
    the first uncommitted offset by partition, 0 if missing; ``batches`` is from
    :func:`uncommitted`.
    """
    if not batches:
        return
    starts = ", ".join(map(str, batches))
    statement = (
        f"delete from {CATALOG}.{TABLE} where _kafka_topic = '{topic.name}' "
        f"and _kafka_topic_id = '{topic.id}' and {beyond(committed)} "
        f"and unix_micros(_ingested_at) in ({starts})"
    )
    table_change.rewrite(lambda: spark.sql(statement))


def remove_batch(spark: SparkSession, topic: Topic, ingested_at: datetime) -> None:
    """Remove the rows of one batch; ``ingested_at`` is its start, its rows' ``_ingested_at``."""
    began = f"timestamp '{ingested_at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC'"
    statement = (
        f"delete from {CATALOG}.{TABLE} where _kafka_topic = '{topic.name}' "
        f"and _kafka_topic_id = '{topic.id}' and _ingested_at = {began}"
    )
    table_change.rewrite(lambda: spark.sql(statement))


def merge(
    changes: DataFrame,
    by: Sequence[str],
    where: Sequence[str],
    then: Callable[[MergeIntoWriter], MergeIntoWriter],
) -> int:
    """Update or delete rows with a merge, in one commit; returns the number of ``changes``.

    Args:
        changes: At most one row per row to change; in ``then`` its columns have the prefix
            ``new_``.
        by: The columns of the table and of ``changes`` to join by.
        where: Conditions on the table's rows, as ``quarantine.column``.
        then: Adds the actions to the merge.
    """
    on = [*(f"quarantine.{name} = new_{name}" for name in by), *where]
    # Cache it: its rows are read from the table that the merge changes.
    found = changes.toDF(*(f"new_{name}" for name in changes.columns)).cache()
    try:
        count = found.count()
        if count:
            table, condition = f"{CATALOG}.{TABLE}", F.expr(" and ".join(on))
            table_change.rewrite(lambda: then(found.mergeInto(table, condition)).merge())
        return count
    finally:
        found.unpersist()


def may_have(spark: SparkSession, topic: str) -> bool:
    """Whether there may be rows of a topic name, from metadata alone."""
    return Jvm(spark).has_files(TABLE, "_kafka_topic", topic)


def of_topic(spark: SparkSession, name: str, topic_id: str | None = None) -> DataFrame:
    """The rows of one topic, or of all topics that ever had its name."""
    rows = spark.table(f"{CATALOG}.{TABLE}").where(F.col("_kafka_topic") == name)
    return rows if topic_id is None else rows.where(F.col("_kafka_topic_id") == topic_id)


def count_of(spark: SparkSession, name: str, commit: Commit) -> int:
    """The number of quarantined records at a commit's offsets of a topic."""
    return of_topic(spark, name, commit.topic_id).where(within(commit.ranges)).count()
