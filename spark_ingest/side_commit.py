"""A commit beside a running stream: what backfill, replay and recovery publish.

They do not take the stream's lease. Each stages on a branch of its own, made where ``main``
stands, and publishes by fast-forward, which Iceberg refuses when the stream committed
meanwhile; then all is done again with the next commit id. A stream that finds ``main`` moved
by such a commit reads its offsets again and goes on behind it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from spark_ingest.checkpoint import Position, standing
from spark_ingest.errors import CommitRefused
from spark_ingest.lease import Commit, stage
from spark_ingest.session import JAVA_ERRORS, Jvm
from spark_ingest.sources import Stream

BRANCH_PREFIX = "side_"
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.2


def commit_beside(
    spark: SparkSession,
    stream: Stream,
    make: Callable[[Position], tuple[DataFrame, Commit] | None],
) -> Commit | None:
    """Publish one commit to a stream's table while the stream may be running.

    Args:
        spark: A session on the lake.
        stream: Whose table; it must have a snapshot.
        make: Gives, for where the table stands now, the table's rows and the commit, whose id
            must be the next one; None when there is nothing to publish after all. Called
            again after each refusal, so the slow part of the work belongs before this.

    Returns:
        What was published.

    Raises:
        CommitRefused: The stream was faster each time.
    """
    jvm = Jvm(spark)
    for _ in range(_ATTEMPTS):
        branch = f"{BRANCH_PREFIX}{secrets.token_hex(6)}"
        iceberg = jvm.iceberg_table(stream.table)
        head = iceberg.currentSnapshot().snapshotId()
        iceberg.manageSnapshots().createBranch(branch, head).commit()
        try:
            # Asked behind the branch: a commit that came between is refused below.
            made = make(standing(spark, stream))
            if made is None:
                return None
            rows, commit = made
            stage(rows, stream.table, branch, commit)
            if _published(jvm, stream.table, branch):
                return commit
        finally:
            iceberg = jvm.iceberg_table(stream.table)
            iceberg.manageSnapshots().removeBranch(branch).commit()
        time.sleep(_PAUSE_SECONDS)
    raise CommitRefused(
        f"{stream.table}: its stream committed first, {_ATTEMPTS} times in a row: "
        "give the stream a longer --every, or stop it meanwhile"
    )


def _published(jvm: Jvm, table: str, branch: str) -> bool:
    """Fast-forward ``main``; False where it has moved."""
    references = jvm.iceberg_table(table).manageSnapshots()
    try:
        references.fastForwardBranch("main", branch).commit()
    except JAVA_ERRORS:
        return False
    return True
