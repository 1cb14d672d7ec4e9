"""Commits concurrent with a running stream: those of backfill, replay and recovery.

They do not take the stream's lease. Each stages on its own branch, created at the head of
``main``, and publishes by fast-forward, which Iceberg refuses if the stream committed
concurrently; then the commit is retried with the next commit id. A stream that finds that such
a commit moved ``main`` reads its offsets again and resumes after it.
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

    The table must have a snapshot; ``uuid`` is its Iceberg UUID when the operation started.
    ``make`` returns the rows and the commit for a position of the table, or None if there is
    nothing to publish; the commit id must be the next one. It is called again after each
    conflict, so do slow work before this call.

    Raises:
        MillraceError: The table was dropped and recreated since the operation started.
        CommitRefused: The stream committed first in each attempt.
    """
    commits: list[Commit] = []

    def write(branch: str) -> bool:
        planned = make(position_of(spark, stream))
        if planned is None:
            return False
        rows, commit = planned
        append_rows(rows, commit, stream.table, branch)
        commits.append(commit)
        return True

    published = publish_on(
        Jvm(spark), stream.table, BRANCH_PREFIX, write,
        "its stream committed first: set a longer --every, or stop it meanwhile", uuid,
    )  # fmt: skip
    return commits[-1] if published else None
