"""Quarantine rows of batches that were never published: found and removed at each start.

Two kinds. A batch that broke off leaves rows at or beyond the committed offsets. A writer
that was overtaken, and then died before it noticed, leaves rows at offsets that its
successor committed: these are known by the start of their batch, which no commit has, and
go only where the record is held elsewhere as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.offsets import beyond
from spark_ingest.connect.broker import Topic
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import CATALOG
from spark_ingest.sources import Stream

_PLACE = ["_kafka_partition", "_kafka_offset"]


def remove(
    spark: SparkSession,
    stream: Stream,
    topic: Topic,
    committed: Mapping[int, int],
    check: Callable[[], None],
) -> None:
    """Remove what no commit of a stream accounts for.

    The commit log must have caught up with the table. Rows of an earlier topic of the same name
    stay. ``committed`` has the first offset that is not committed, by partition, 0 where
    missing; ``check`` raises where the table was taken over.

    Raises:
        LeaseLost: The table was taken over.
    """
    # Most topics have no bad records, and a question to Spark costs as much as a small batch.
    if not quarantine_table.may_have(spark, topic.name):
        return
    batches, has_older = quarantine_table.uncommitted(spark, topic, committed)
    # Whoever takes the table over goes on from these offsets, too. So only those batches are
    # removed that were there while it was this writer's: none of them is the other's.
    check()
    quarantine_table.remove_uncommitted(spark, topic, committed, batches)
    if has_older:
        _remove_overtaken(spark, stream, topic, committed)


def _remove_overtaken(
    spark: SparkSession, stream: Stream, topic: Topic, committed: Mapping[int, int]
) -> None:
    rows = quarantine_table.of_topic(spark, topic.name, topic.id).where(
        F.col("replayed_at").isNull() & ~F.expr(beyond(committed))
    )
    starts = (
        spark.table(f"{CATALOG}.{commit_log.TABLE}")
        .where((F.col("table_name") == stream.table) & F.col("started_at").isNotNull())
        .select(F.col("started_at").alias("_ingested_at"))
    )
    batches = rows.select("_ingested_at").distinct()
    strange = batches.join(starts, "_ingested_at", "left_anti").cache()
    try:
        if strange.isEmpty():
            return
        places = rows.select(*_PLACE, "_ingested_at")
        suspects = places.join(strange, "_ingested_at", "left_semi")
        sound = places.join(strange, "_ingested_at", "left_anti").select(*_PLACE)
        table = spark.table(f"{CATALOG}.{stream.table}")
        in_bronze = table.where(F.col("_kafka_topic_id") == topic.id).select(*_PLACE)
        # A commit that was written down late has no start either: of rows that are all
        # suspect the last one stays.
        later = suspects.groupBy(*_PLACE).agg(F.max("_ingested_at").alias("last"))
        repeated = suspects.join(later, _PLACE).where("_ingested_at < last")
        held = suspects.join(sound.unionAll(in_bronze).distinct(), _PLACE, "left_semi")
        doomed = held.unionByName(repeated.drop("last")).distinct()
        _delete(topic, doomed)
    finally:
        strange.unpersist()


def _delete(topic: Topic, doomed: DataFrame) -> None:
    """Delete the rows at these places that these batches quarantined."""
    keys = [*_PLACE, "_ingested_at"]
    # Once, and for good: the table that they are found in is the one that changes.
    found = doomed.select(*(F.col(key).alias(f"doomed{key}") for key in keys)).cache()
    same = [f"quarantine.{key} = doomed{key}" for key in keys]
    same += [
        f"quarantine._kafka_topic = '{topic.name}'",
        f"quarantine._kafka_topic_id = '{topic.id}'",
        "quarantine.replayed_at is null",
    ]
    try:
        if not found.isEmpty():
            table_change.rewrite(
                lambda: (
                    found.mergeInto(
                        f"{CATALOG}.{quarantine_table.TABLE}", F.expr(" and ".join(same))
                    )
                    .whenMatched()
                    .delete()
                    .merge()
                )
            )
    finally:
        found.unpersist()
