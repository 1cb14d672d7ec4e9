"""A table that was set back to an earlier commit: what the log has beyond it is removed.

Older metadata that was registered again, or a rollback, leaves rows of commits that the
table has no more. The next commits get the same ids, so with those rows the log would tell
of other records than the table has. Who has read the table knows by the time of the log's row
that names it: it stands there as it does since then.
"""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log, quarantine_table
from spark_ingest.commits.committed import CommitKind, newest_own_snapshot
from spark_ingest.commits.table_identity import KIND, Identity
from spark_ingest.lake import table_change
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.sources import Stream

_LOG = f"{CATALOG}.{commit_log.TABLE}"
_PLACE = ("_kafka_topic_id", "_kafka_partition", "_kafka_offset")


def remove_rows_ahead(spark: SparkSession, stream: Stream, known: Identity) -> str | None:
    """Remove the log's rows of commits beyond the newest one that a stream's table shows.

    Of a table whose own snapshots have expired nobody can tell. The table is held by the
    stream's lease. ``known`` is asked first: what is committed meanwhile makes the table newer,
    not the log. Returns what to tell people; None where the log is not ahead.
    """
    uuid, last = known.uuid, known.logged.largest
    newest = newest_own_snapshot(Jvm(spark), stream.table)
    if newest is None or last is None or last <= newest.commit.id:
        return None
    first = newest.commit.id + 1
    ahead = f"table_uuid = '{uuid}' and commit_id between {first} and {last}"
    kinds = spark.table(_LOG).where(ahead).select("kind").distinct().collect()
    if any(row[0] == CommitKind.REPLAY for row in kinds):
        _open_again(spark, stream, newest.committed_at)
    # Before the rows ahead are gone: without them nobody would know any more.
    stands_since_now(spark, uuid)
    table_change.rewrite(lambda: spark.sql(f"delete from {_LOG} where {ahead}"))
    return (
        f"{stream.name}: {stream.table} was set back to commit {first - 1}: its commits "
        f"{first} to {last} are removed from {commit_log.TABLE}, and what they took is read "
        "again from the broker; dbt asks for a full refresh of the marts that have read them"
    )


def stands_since_now(spark: SparkSession, uuid: str) -> None:
    """Say in the log that a table stands there as it does since now.

    dbt then asks for a full refresh of whatever has read it before. ``uuid`` is Iceberg's of
    the table, which the log names.
    """
    statement = (
        f"update {_LOG} set committed_at = "
        "greatest(current_timestamp(), committed_at + interval 1 microsecond) "
        f"where table_uuid = '{uuid}' and kind = '{KIND}'"
    )
    table_change.rewrite(lambda: spark.sql(statement))


def _open_again(spark: SparkSession, stream: Stream, since: datetime) -> None:
    """Open the bad records that were replayed since then and that the table has no more."""
    table = spark.table(f"{CATALOG}.{stream.table}").select(*_PLACE)
    is_since = F.col("replayed_at") > F.lit(since)
    replayed = quarantine_table.of_topic(spark, stream.topic).where(is_since)
    # Once, and for good: the table that they are found in is the one that changes.
    found = (
        replayed.join(table, [*_PLACE], "left_anti")
        .select(*(F.col(key).alias(f"gone{key}") for key in _PLACE))
        .distinct()
        .cache()
    )
    same = [f"quarantine.{key} = gone{key}" for key in _PLACE]
    same += [f"quarantine._kafka_topic = '{stream.topic}'"]
    try:
        table_change.rewrite(
            lambda: (
                found.mergeInto(f"{CATALOG}.{quarantine_table.TABLE}", F.expr(" and ".join(same)))
                .whenMatched(F.expr("quarantine.replayed_at is not null"))
                .update({"replayed_at": F.lit(None).cast("timestamp")})
                .merge()
            )
        )
    finally:
        found.unpersist()
