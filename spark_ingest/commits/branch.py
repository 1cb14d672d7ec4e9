"""Work on a branch of an Iceberg table, published only where ``main`` has not moved."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from spark_ingest.commits.committed import Commit, check_number
from spark_ingest.errors import ColumnsChanged, CommitRefused, CommitUnknown, MillraceError
from spark_ingest.lake.jvm import JAVA_ERRORS, Jvm
from spark_ingest.lake.table_change import (
    Step,
    change_table,
    commit_of,
    conflict_refused,
    newest_on_main,
)

# Iceberg's word for a commit of which nobody knows whether it was made.
_UNKNOWN_STATE = "CommitStateUnknown"
# As often as a change of refs is tried on a catalog that does not answer.
_FAILURES = 2
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.2
# Iceberg does not record when a branch was created: its name does.
_NAME = re.compile(r"[a-z]+_(\d{10,})_[0-9a-f]{12}")


def created_at(branch: str) -> datetime | None:
    """When a branch of :func:`publish_on` was made; None for any other branch."""
    match = _NAME.fullmatch(branch)
    return None if match is None else datetime.fromtimestamp(int(match[1]), UTC)


def append_files(iceberg: Any, files: Sequence[Any], commit: Commit, branch: str) -> None:
    """Append data files, or none, to a branch of an Iceberg table, in one commit.

    Args:
        files: Iceberg's ``DataFile`` of each.
        commit: What publishing the branch will mean.

    Raises:
        CommitRefused: Others kept changing the table.
    """
    append = iceberg.newAppend().toBranch(branch)
    for file in files:
        append = append.appendFile(file)
    for key, value in commit.summary().items():
        append = append.set(key, value)
    with conflict_refused(iceberg.name()):
        append.commit()


def publish_on(
    jvm: Jvm,
    table: str,
    prefix: str,
    write: Callable[[str], bool],
    refused: str,
    uuid: str | None = None,
) -> bool:
    """Write to a branch made where ``main`` stands, and fast-forward ``main`` to it.

    Iceberg refuses that when ``main`` has moved meanwhile; all is then done again.

    Args:
        table: ``schema.name``; it must have a snapshot.
        write: Writes to the branch of the name that it gets; False when there is nothing to
            write after all. It is called behind the making of the branch: what it reads is
            what it is published on.
        refused: What to say when somebody else was faster each time.
        uuid: Iceberg's UUID of the table that it is for; None for any.

    Returns:
        Whether something was published.

    Raises:
        MillraceError: The table was dropped and recreated.
        CommitRefused: Somebody else was faster each time.
        CommitUnknown: The catalog went away before it was known whether it is published.
        CatalogUnavailable: The catalog does not answer.
    """
    unknown = 0
    for _ in range(_ATTEMPTS):
        branch = f"{prefix}{int(time.time())}_{secrets.token_hex(6)}"
        change_table(jvm, table, partial(_making, branch, uuid))
        try:
            if not write(branch):
                return False
            if _published(jvm, table, branch, uuid):
                return True
        except ColumnsChanged:
            # What is written is planned again.
            pass
        except JAVA_ERRORS as error:
            # Whether it is on the branch does not matter: it is written to another one.
            unknown += 1
            if _UNKNOWN_STATE not in str(error) or unknown == _FAILURES:
                raise
        finally:
            # What is published is published; `maintain` removes a branch that stays.
            with suppress(MillraceError):
                remove_branch(jvm, table, branch)
        time.sleep(_PAUSE_SECONDS)
    raise CommitRefused(f"{table}: {refused} ({_ATTEMPTS} times in a row)")


def remove_branch(jvm: Jvm, table: str, branch: str) -> None:
    """Remove a branch of a table; nothing happens where there is none of that name.

    Raises:
        CommitRefused: Others kept changing the table.
        CatalogUnavailable: The catalog does not answer.
    """

    def step(iceberg: Any) -> Step | None:
        if branch not in iceberg.refs():
            return None
        update = iceberg.manageSnapshots().removeBranch(branch)
        return commit_of(update)

    change_table(jvm, table, step)


def _require_table(iceberg: Any, uuid: str | None) -> None:
    """Refuse another table than the one that the work began with: it gets those rows itself."""
    if uuid is not None and str(iceberg.uuid()) != uuid:
        raise MillraceError(
            f"{iceberg.name()} was dropped and recreated meanwhile (table UUID {uuid} then): "
            "let its stream take what the broker holds, then start this again"
        )


def _making(branch: str, uuid: str | None, iceberg: Any) -> Step | None:
    _require_table(iceberg, uuid)
    if branch in iceberg.refs():
        return None
    head = iceberg.currentSnapshot().snapshotId()
    update = iceberg.manageSnapshots().createBranch(branch, head)
    return commit_of(update)


def _published(jvm: Jvm, table: str, branch: str, uuid: str | None) -> bool:
    """Fast-forward ``main``; False where it has moved."""
    # What main was, or may have been, forwarded to: an answer may be lost on its way.
    tried: set[int] = set()

    def step(iceberg: Any) -> Step | None:
        if tried and newest_on_main(iceberg, tried) is not None:
            return None
        _require_table(iceberg, uuid)
        staged = iceberg.snapshot(branch)
        check_number(iceberg, staged)
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
