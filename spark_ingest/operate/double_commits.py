"""Find commit ids that two commits of a table share.

A commit of Millrace always follows the previous id. If another writer adds rows with an existing
id, dbt, which has read one of the two commits, skips the other. All rows of a commit have the same
``_ingested_at``, the start of its batch, so the rows show it even without snapshots.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_ingest.commits import commit_log
from spark_ingest.lake import bronze
from spark_ingest.lake.jvm import CATALOG, Jvm
from spark_ingest.operate import checkpoints
from spark_ingest.sources import Stream

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEWEST = 2**62


@dataclass(frozen=True)
class DoubleCommit:
    """A commit id that several commits share.

    Attributes:
        rows: Start of the batch and number of rows of each commit.
    """

    commit_id: int
    rows: tuple[tuple[datetime, int], ...]

    def __str__(self) -> str:
        return " and ".join(
            f"{count:,} rows of {began:%Y-%m-%d %H:%M:%S.%f} UTC" for began, count in self.rows
        )


def find(spark: SparkSession, stream: Stream, *, full: bool = False) -> list[DoubleCommit]:
    """The duplicate commit ids of a stream's table.

    The table must exist. Without ``full`` the rows are read only if their number in the table's
    metadata differs from the commit log.
    """
    if not full and _has_as_many_as_logged(spark, stream):
        return []
    table = spark.table(f"{CATALOG}.{stream.table}")
    commit_id, began = F.col("_commit_id"), F.unix_micros("_ingested_at")
    spread = table.groupBy(commit_id).agg(
        F.min("_ingested_at").alias("first"), F.max("_ingested_at").alias("last")
    )
    double = spread.where("_commit_id is not null and first < last")
    ids = [row[0] for row in double.select("_commit_id").collect()]
    if not ids:
        return []
    each = table.where(commit_id.isin(ids)).groupBy(commit_id, began.alias("began"))
    counted = each.count().orderBy("_commit_id", "began").collect()
    return [
        DoubleCommit(
            number,
            tuple(
                (_EPOCH + timedelta(microseconds=micros), count)
                for of, micros, count in counted
                if of == number
            ),
        )
        for number in sorted(ids)
    ]


def _has_as_many_as_logged(spark: SparkSession, stream: Stream) -> bool:
    """Whether a table has as many rows as its commits in the commit log."""
    now = checkpoints.current_snapshot(Jvm(spark), stream.table)
    if now is None:
        return True
    if now.has_deletes or not bronze.exists(spark, commit_log.TABLE):
        return False
    brought, _ = commit_log.grown(spark, stream, 0, now.commit_id or _NEWEST)
    return brought == now.records
