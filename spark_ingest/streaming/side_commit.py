"""Commits concurrent with a running stream: those of backfill, replay and recovery.

They do not take the stream's lease. Each stages on its own branch, created at the head of
``main``, and publishes by fast-forward, which Iceberg refuses if the stream committed
concurrently; then the commit is retried with the next commit id. A stream that finds that such
a commit moved ``main`` reads its offsets again and resumes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from spark_ingest.commits.branch import append_files, head_of, publish_on, unstaging
from spark_ingest.commits.committed import COMMIT_ID, Commit
from spark_ingest.commits.resume import Position, position_of
from spark_ingest.data_files.stage import append_rows
from spark_ingest.lake.jvm import Jvm
from spark_ingest.lake.table_change import Step, change_table, commit_of_all
from spark_ingest.sources import Stream

BRANCH_PREFIX = "side_"
_T = TypeVar("_T")


class SideBranch:
    """A branch for one commit, staged as under a stream's lease."""

    def __init__(self, jvm: Jvm, table: str, name: str) -> None:
        self._jvm = jvm
        self._table = table
        self._name = name

    def stage(self, write: Callable[[str, str], _T]) -> _T:
        """Write rows to the branch; ``write`` receives the table and the branch name."""
        return write(self._table, self._name)

    def stage_files(self, files: Sequence[Any], commit: Commit) -> None:
        """Append data files, each Iceberg's ``DataFile``, to the branch.

        Raises:
            CommitRefused: The branch was removed, or others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """

        def step(iceberg: Any) -> Step | None:
            staged = head_of(iceberg, self._table, self._name).summary()
            if staged.get(COMMIT_ID) == str(commit.id):
                # The response to an earlier attempt was lost.
                return None
            transaction = iceberg.newTransaction()
            append_files(transaction, self._name, files, commit.summary())
            return commit_of_all(transaction)

        change_table(self._jvm, self._table, step)

    def unstage(self) -> None:
        """Discard what is staged.

        Raises:
            CommitRefused: Others kept changing the table.
            CatalogUnavailable: The catalog is unavailable.
        """
        change_table(
            self._jvm,
            self._table,
            lambda iceberg: unstaging(iceberg, self._table, self._name),
        )


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

    def stage(here: Position, branch: SideBranch) -> Commit | None:
        planned = make(here)
        if planned is None:
            return None
        rows, commit = planned
        branch.stage(partial(append_rows, rows, commit))
        return commit

    return stage_beside(spark, stream, uuid, stage)


def stage_beside(
    spark: SparkSession,
    stream: Stream,
    uuid: str,
    stage: Callable[[Position, SideBranch], Commit | None],
) -> Commit | None:
    """Like :func:`commit_beside`, for rows or data files that ``stage`` writes to the branch."""
    commits: list[Commit] = []
    jvm = Jvm(spark)

    def write(branch: str) -> bool:
        commit = stage(position_of(spark, stream), SideBranch(jvm, stream.table, branch))
        if commit is not None:
            commits.append(commit)
        return commit is not None

    published = publish_on(
        jvm, stream.table, BRANCH_PREFIX, write,
        "its stream committed first: set a longer --every, or stop it meanwhile", uuid,
    )  # fmt: skip
    return commits[-1] if published else None
