"""Commits on a branch of an Iceberg table, published only if ``main`` has not moved."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from spark_ingest.commits.committed import COMMIT_ID, check_number
from spark_ingest.errors import ColumnsChanged, CommitRefused, CommitUnknown, MillraceError
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm
from spark_ingest.lake.table_change import (
    Step,
    change_table,
    commit_of,
    newest_on_main,
)

# Part of Iceberg's exception class for a commit with an unknown outcome.
_UNKNOWN_STATE = "CommitStateUnknown"
# Attempts with an unavailable catalog, as for a change of refs.
_FAILURES = 2
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.2
# Iceberg does not record the creation time of a branch, so its name contains it.
_NAME = re.compile(r"[a-z]+_(\d{10,})_[0-9a-f]{12}")


def created_at(branch: str) -> datetime | None:
    """The creation time of a branch of :func:`publish_on`; None for any other branch."""
    match = _NAME.fullmatch(branch)
    return None if match is None else datetime.fromtimestamp(int(match[1]), UTC)


def publish_on(
    jvm: Jvm,
    table: str,
    prefix: str,
    write: Callable[[str], bool],
    refused: str,
    uuid: str | None = None,
) -> bool:
    """Write to a branch created at the head of ``main``, and fast-forward ``main`` to it.

    Iceberg refuses the fast-forward if ``main`` has moved; then all is retried.

    Args:
        table: ``schema.name``; it must have a snapshot.
        write: Writes to the named branch; False if there is nothing to write. It is called after
            the branch was created, so it reads the state that it is published on.
        refused: The error message after the last conflict.
        uuid: The expected Iceberg UUID of the table; None for any.

    Returns:
        Whether something was published.

    Raises:
        MillraceError: The table was dropped and recreated.
        CommitRefused: Other writers committed first in each attempt.
        CommitUnknown: The catalog failed, and the outcome of the commit is unknown.
        CatalogUnavailable: The catalog is unavailable.
    """
    unknown = 0
    for _ in range(_ATTEMPTS):
        branch = f"{prefix}{int(time.time())}_{secrets.token_hex(6)}"
        change_table(jvm, table, partial(_creation, branch, uuid))
        try:
            if not write(branch):
                return False
            if _published(jvm, table, branch, uuid):
                return True
        except ColumnsChanged:
            # Retry with the new columns.
            pass
        except JAVA_ERRORS as error:
            # Whether it is on the branch does not matter: the retry uses a new one.
            unknown += 1
            if _UNKNOWN_STATE not in str(error) or unknown == _FAILURES:
                raise
        finally:
            # An error here does not undo the commit; `maintain` removes a remaining branch.
            with suppress(MillraceError):
                remove_branch(jvm, table, branch)
        time.sleep(_PAUSE_SECONDS)
    raise CommitRefused(f"{table}: {refused} ({_ATTEMPTS} times in a row)")


def remove_branch(jvm: Jvm, table: str, branch: str) -> None:
    """Remove a branch of a table if it exists.

    Raises:
        CommitRefused: Others kept changing the table.
        CatalogUnavailable: The catalog is unavailable.
    """

    def step(iceberg: Any) -> Step | None:
        if branch not in iceberg.refs():
            return None
        update = iceberg.manageSnapshots().removeBranch(branch)
        return commit_of(update)

    change_table(jvm, table, step)


def append_files(
    transaction: Any, branch: str, files: Sequence[Any], summary: Mapping[str, str]
) -> None:
    """Append data files, each Iceberg's ``DataFile``, to a branch in a transaction.

    ``summary`` has the properties of the snapshot.
    """
    append = transaction.newAppend().toBranch(branch)
    for file in files:
        append = append.appendFile(file)
    for key, value in summary.items():
        append = append.set(key, value)
    append.commit()


def head_of(iceberg: Any, table: str, branch: str) -> Any:
    """The newest snapshot of a branch.

    Raises:
        CommitRefused: The branch was removed: `maintain` takes one of an hour ago for abandoned.
    """
    snapshot = iceberg.snapshot(branch)
    if snapshot is None:
        raise CommitRefused(
            f"{table}: the branch {branch} was removed before its commit: run the command again"
        )
    return snapshot


def unstaging(iceberg: Any, table: str, branch: str) -> Step | None:
    """The commit that resets a branch to the snapshot where it left ``main``.

    None if it is there. The branch has at most one snapshot of its own.

    Raises:
        CommitRefused: The branch was removed, or ``main`` rolled back before that snapshot.
    """
    staged = head_of(iceberg, table, branch)
    base = newest_on_main(iceberg, (staged.snapshotId(), staged.parentId()))
    if base is None:
        raise CommitRefused(f"{table} changed concurrently: it was rolled back")
    if base == staged.snapshotId():
        return None
    return commit_of(iceberg.manageSnapshots().replaceBranch(branch, base))


def _require_table(iceberg: Any, uuid: str | None) -> None:
    """Refuse a recreated table: its stream writes those rows itself."""
    if uuid is not None and str(iceberg.uuid()) != uuid:
        raise MillraceError(
            f"{iceberg.name()} was dropped and recreated meanwhile (old table UUID {uuid}): "
            "let its stream read what the broker has, then run this again"
        )


def _creation(branch: str, uuid: str | None, iceberg: Any) -> Step | None:
    _require_table(iceberg, uuid)
    if branch in iceberg.refs():
        return None
    head = iceberg.currentSnapshot().snapshotId()
    update = iceberg.manageSnapshots().createBranch(branch, head)
    return commit_of(update)


def _published(jvm: Jvm, table: str, branch: str, uuid: str | None) -> bool:
    """Fast-forward ``main``; False if it has moved."""
    # Snapshots that main was, or may have been, forwarded to: a response may have been lost.
    tried: set[int] = set()

    def step(iceberg: Any) -> Step | None:
        if tried and newest_on_main(iceberg, tried) is not None:
            return None
        _require_table(iceberg, uuid)
        staged = head_of(iceberg, table, branch)
        check_number(iceberg, staged.summary().get(COMMIT_ID))
        update = iceberg.manageSnapshots().fastForwardBranch("main", branch)
        tried.add(staged.snapshotId())
        return commit_of(update)

    try:
        change_table(jvm, table, step)
    except CommitUnknown:
        raise
    except CommitRefused:
        return False
    return True
