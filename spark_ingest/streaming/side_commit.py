"""A commit beside a running stream: what backfill, replay and recovery publish.

They do not take the stream's lease. Each stages on a branch of its own, made where ``main``
stands, and publishes by fast-forward, which Iceberg refuses when the stream committed
meanwhile; then all is done again with the next commit id. A stream that finds ``main`` moved
by such a commit reads its offsets again and goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from spark_ingest.commits.branch import publish_on
from spark_ingest.commits.committed import Commit
from spark_ingest.commits.resume import Position, position_of
from spark_ingest.data_files.stage import append_rows
from spark_ingest.lake.jvm import Jvm
from spark_ingest.sources import Stream

BRANCH_PREFIX = "side_"


def commit_beside(
    spark: SparkSession,
    stream: Stream,
    uuid: str,
    make: Callable[[Position], tuple[DataFrame, Commit] | None],
) -> Commit | None:
    """Publish one commit to a stream's table while the stream may be running.

    The table must have a snapshot; ``uuid`` is Iceberg's of it when the work began. ``make``
    gives, for where the table stands now, the table's rows and the commit, whose id must be the
    next one; None when there is nothing to publish after all. It is called again after each
    refusal, so the slow part of the work belongs before this.

    Raises:
        MillraceError: The table was dropped and recreated since the work began.
        CommitRefused: The stream was faster each time.
    """
    commits: list[Commit] = []

    def write(branch: str) -> bool:
        made = make(position_of(spark, stream))
        if made is None:
            return False
        rows, commit = made
        append_rows(rows, commit, stream.table, branch)
        commits.append(commit)
        return True

    published = publish_on(
        Jvm(spark), stream.table, BRANCH_PREFIX, write,
        "its stream committed first: give it a longer --every, or stop it meanwhile", uuid,
    )  # fmt: skip
    return commits[-1] if published else None
