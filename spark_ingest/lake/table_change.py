"""A change of a table's refs, properties or schema, repeated where others committed in between.

Iceberg makes a commit of rows again behind somebody else's, but not one of refs or schema:
that is refused whatever ``commit.retry.num-retries`` says. Here the table is loaded again and
asked what is still to do, which also settles what a catalog left open: a commit whose answer
was lost is either there, or it is repeated.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException

from spark_ingest.errors import CatalogUnavailable, CommitRefused, CommitUnknown, MillraceError
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm, java_reason

# About ten seconds of others being faster.
_CONFLICTS = 20
# Catalogs' own clients ask for half a minute before they give up.
_FAILURES = 2
_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_CONFLICT = "org.apache.iceberg.exceptions.CommitFailedException"
# What Iceberg says of a change that the table, as it is, cannot take.
_INVALID = (
    "org.apache.iceberg.exceptions.ValidationException",
    "java.lang.IllegalArgumentException",
    "java.lang.IllegalStateException",
)
_REWRITES = 20
_REWRITE_PAUSE_SECONDS = 0.3
# What Iceberg calls it when two rewrites of the same files meet.
_REWRITE_CONFLICTS = ("ValidationException", "CommitFailedException", "conflicting")
_random = secrets.SystemRandom()
# The commit that is left to make of a change.
Step = Callable[[], object]


def commit_of(update: Any) -> Step:
    """The commit of one of Iceberg's pending updates."""
    commit: Step = update.commit
    return commit


def commit_of_all(transaction: Any) -> Step:
    """The one commit of all that was done in one of Iceberg's transactions."""
    commit: Step = transaction.commitTransaction
    return commit


def change_table(
    jvm: Jvm,
    table: str,
    plan: Callable[[Any], Step | None],
    invalid: Callable[[str], MillraceError] | None = None,
) -> None:
    """Make a change of a table, whoever else is changing it.

    Args:
        plan: Gets Iceberg's table, freshly loaded, and gives the commit that is left to make;
            None where nothing is. Called again after each conflict and after each commit
            whose outcome nobody knows.
        invalid: Makes the error for a change that the table cannot take, from what Iceberg
            says of it; where it is not given that is a ``CommitRefused``.

    Raises:
        CommitRefused: Others were faster each time, or the table cannot take the change.
        CommitUnknown: The catalog went away before it was known whether the commit is in.
        CatalogUnavailable: The catalog or the storage does not answer; nothing was changed.
        MillraceError: There is no such table any more.
    """
    conflicts = failures = 0
    # Whether a commit was made of which nobody knows if it is in.
    is_open = False
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
                "docs/runbooks/lost-lake.md says how it comes back"
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
                is_open = is_open or committing
                if failures == _FAILURES:
                    raise _away(table, reason, is_open) from error
        longest = _PAUSE_SECONDS * 2 ** (conflicts + failures)
        time.sleep(_random.uniform(0, min(longest, _LONGEST_PAUSE_SECONDS)))


def first_snapshot(jvm: Jvm, table: str) -> None:
    """Give a new table an empty snapshot, since a branch needs one to start from."""

    def step(iceberg: Any) -> Step | None:
        if iceberg.currentSnapshot() is not None:
            return None
        return commit_of(iceberg.newAppend())

    change_table(jvm, table, step)


def newest_on_main(iceberg: Any, wanted: Collection[int]) -> int | None:
    """The newest of these snapshots that is ``main`` or behind it; None where none is."""
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
        # PySpark makes an error of its own of it.
        return "java.lang.IllegalArgumentException"
    java = getattr(error, "java_exception", None)
    return type(error).__name__ if java is None else str(java.getClass().getName())


def is_conflict(error: Exception) -> bool:
    """Whether Iceberg refused a commit since somebody else was faster, all retries included."""
    java = getattr(error, "java_exception", None)
    while java is not None:
        if java.getClass().getName() == _CONFLICT:
            return True
        java = java.getCause()
    return False


@contextmanager
def conflict_refused(table: str) -> Iterator[None]:
    """Raise ``CommitRefused`` for a commit to a table that Iceberg refused for a conflict."""
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


def _away(table: str, reason: str, is_open: bool) -> MillraceError:
    if is_open:
        return CommitUnknown(f"{table}: the catalog did not say whether a commit is in: {reason}")
    return CatalogUnavailable(f"{table}: its catalog does not answer: {reason}")


def rewrite(change: Callable[[], object]) -> None:
    """Delete or update rows, again where others rewrote the same files meanwhile.

    ``change`` does it; it plans again each time.
    """
    for left in range(_REWRITES - 1, -1, -1):
        try:
            change()
            return
        except JAVA_ERRORS as error:
            if not left or not any(word in str(error) for word in _REWRITE_CONFLICTS):
                raise
        time.sleep(_REWRITE_PAUSE_SECONDS)
