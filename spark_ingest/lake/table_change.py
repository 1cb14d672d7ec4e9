"""Changes of a table's refs, properties or schema, with retries after conflicts.

Iceberg retries an append after a conflict, but not a change of refs or schema, regardless of
``commit.retry.num-retries``. Here the table is reloaded and the change is planned again, which
also resolves commits with an unknown outcome: such a commit is either visible, or it is retried.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException

from spark_ingest.errors import CatalogUnavailable, CommitRefused, CommitUnknown, MillraceError
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason

# About ten seconds of conflicts.
_CONFLICTS = 20
# The catalogs' clients retry for half a minute themselves.
_FAILURES = 2
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException"
# Exceptions of Iceberg for a change that is invalid for the current table.
_INVALID = (
    "org.apache.iceberg.exceptions.ValidationException",
    "java.lang.IllegalArgumentException",
    "java.lang.IllegalStateException",
)
_REWRITES = 20
_REWRITE_PAUSE_SECONDS = 0.3
# Errors of Iceberg for concurrent rewrites of the same files.
_REWRITE_CONFLICTS = (
    "ValidationException",
    "CommitFailedException",
    "conflicting",
    # rewrite_data_files with partial progress.
    "commits failed",
)
_random = secrets.SystemRandom()
# The commit of a change.
Step = Callable[[], object]


def commit_of(update: Any) -> Step:
    """The commit of a pending update of Iceberg."""
    commit: Step = update.commit
    return commit


def commit_of_all(transaction: Any) -> Step:
    """The commit of an Iceberg transaction.

    Not by ``commitTransaction``, which deletes the manifests of a refused commit. A commit that
    got through may look refused: a client or a gateway repeated the request, and passed on the
    second answer.
    """
    base, changed = transaction.startMetadata(), transaction.currentMetadata()
    return partial(transaction.underlyingOps().commit, base, changed)


def change_table(
    jvm: Jvm,
    table: str,
    plan: Callable[[Any], Step | None],
    invalid: Callable[[str], MillraceError] | None = None,
) -> None:
    """Change a table, with concurrent writers.

    Args:
        plan: Returns the commit for the freshly loaded Iceberg table; None if nothing is left to
            do. Called again after each conflict and after each commit with an unknown outcome.
        invalid: Creates the error for an invalid change from Iceberg's message; None for a
            ``CommitRefused``.

    Raises:
        CommitRefused: Other writers committed first in each attempt, or the change is invalid.
        CommitUnknown: The catalog failed, and the outcome of the commit is unknown.
        CatalogUnavailable: The catalog or the storage is unavailable; nothing was changed.
        MillraceError: The table does not exist any more.
    """
    conflicts = failures = 0
    # Whether the outcome of a commit is unknown.
    is_unknown = False
    while True:
        committing = False
        try:
            step = plan(jvm.iceberg_table(table))
            if step is None:
                return
            committing = True
            step()
            return
        except AnalysisException as error:
            raise MillraceError(
                f"{table} cannot be opened ({java_reason(error)}): was it dropped? "
                "docs/runbooks/lost-lake.md describes how to restore it"
            ) from error
        except JAVA_ERRORS as error:
            reason = java_reason(error)
            kind = java_class(error)
            if kind in _INVALID:
                raise _refused(table, reason, invalid) from error
            if kind == _CONFLICT:
                conflicts += 1
                if conflicts == _CONFLICTS:
                    raise CommitRefused(f"{table} changed concurrently: {reason}") from error
            else:
                failures += 1
                is_unknown = is_unknown or committing
                if failures == _FAILURES:
                    raise _unavailable(table, reason, is_unknown) from error
        time.sleep(_random.uniform(0, longest_pause(conflicts + failures)))


def longest_pause(attempts: int) -> float:
    """The longest pause, in seconds, after some failed attempts; the actual one is random."""
    return min(_PAUSE_SECONDS * float(1 << attempts), _LONGEST_PAUSE_SECONDS)


def first_snapshot(jvm: Jvm, table: str) -> None:
    """Append an empty snapshot to a new table, because a branch needs a snapshot."""

    def step(iceberg: Any) -> Step | None:
        if iceberg.currentSnapshot() is not None:
            return None
        transaction = iceberg.newTransaction()
        transaction.newAppend().commit()
        return commit_of_all(transaction)

    change_table(jvm, table, step)


def newest_on_main(iceberg: Any, wanted: Collection[int]) -> int | None:
    """The newest of these snapshots that is in the history of ``main``; None if none is."""
    snapshot = iceberg.currentSnapshot()
    while snapshot is not None:
        if (number := int(snapshot.snapshotId())) in wanted:
            return number
        parent = snapshot.parentId()
        snapshot = iceberg.snapshot(parent) if parent is not None else None
    return None


def java_class(error: Exception) -> str:
    """The Java class of an error of :data:`spark_ingest.lake.jvm.JAVA_ERRORS`."""
    if isinstance(error, IllegalArgumentException):
        # PySpark converts it to its own error.
        return "java.lang.IllegalArgumentException"
    java = getattr(error, "java_exception", None)
    return type(error).__name__ if java is None else str(java.getClass().getName())


def is_conflict(error: Exception) -> bool:
    """Whether Iceberg refused a commit because of a conflict, after its own retries."""
    java = getattr(error, "java_exception", None)
    while java is not None:
        if java.getClass().getName() == _CONFLICT:
            return True
        java = java.getCause()
    return False


@contextmanager
def conflict_refused(table: str) -> Iterator[None]:
    """Convert a conflict of a commit to ``CommitRefused``."""
    try:
        yield
    except JAVA_ERRORS as error:
        if is_conflict(error):
            raise CommitRefused(f"{table} changed concurrently: {java_reason(error)}") from error
        raise


def _refused(
    table: str, reason: str, invalid: Callable[[str], MillraceError] | None
) -> MillraceError:
    if invalid is not None:
        return invalid(reason)
    return CommitRefused(f"{table} changed concurrently: {reason}")


def _unavailable(table: str, reason: str, is_unknown: bool) -> MillraceError:
    if is_unknown:
        return CommitUnknown(f"{table}: the catalog did not say whether a commit is in: {reason}")
    return CatalogUnavailable(f"{table}: its catalog does not answer: {reason}")


def is_rewrite_conflict(error: Exception) -> bool:
    """Whether a rewrite of files failed because of a concurrent commit."""
    return any(word in str(error) for word in _REWRITE_CONFLICTS)


def rewrite(change: Callable[[], object]) -> None:
    """Delete or update rows, with retries if others rewrote the same files concurrently.

    ``change`` executes the statement, which is planned again each time.
    """
    for left in range(_REWRITES - 1, -1, -1):
        try:
            change()
            return
        except JAVA_ERRORS as error:
            if not left or not is_rewrite_conflict(error):
                raise
        time.sleep(_REWRITE_PAUSE_SECONDS)
