"""Work on a branch of an Iceberg table, published only where ``main`` has stood still."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime

from spark_ingest.errors import ColumnsChanged, CommitRefused
from spark_ingest.session import JAVA_ERRORS, Jvm

_ATTEMPTS = 50
_PAUSE_SECONDS = 0.2
# Iceberg does not know when a branch was made: its name tells.
_NAME = re.compile(r"[a-z]+_(\d{10,})_[0-9a-f]{12}")


def made_at(branch: str) -> datetime | None:
    """When a branch of :func:`publish_on` was made; None for any other branch."""
    match = _NAME.fullmatch(branch)
    return None if match is None else datetime.fromtimestamp(int(match[1]), UTC)


def publish_on(
    jvm: Jvm, table: str, prefix: str, write: Callable[[str], bool], refused: str
) -> bool:
    """Write to a branch made where ``main`` stands, and fast-forward ``main`` to it.

    Iceberg refuses that when ``main`` has moved meanwhile; all is then done again.

    Args:
        jvm: The session's JVM.
        table: ``schema.name``; it must have a snapshot.
        prefix: What the branch's name begins with.
        write: Writes to the branch of the name that it gets; False when there is nothing to
            write after all. It is called behind the making of the branch: what it reads is
            what it is published on.
        refused: What to say when somebody else was faster each time.

    Returns:
        Whether something was published.

    Raises:
        CommitRefused: Somebody else was faster each time.
    """
    for _ in range(_ATTEMPTS):
        branch = f"{prefix}{int(time.time())}_{secrets.token_hex(6)}"
        iceberg = jvm.iceberg_table(table)
        head = iceberg.currentSnapshot().snapshotId()
        iceberg.manageSnapshots().createBranch(branch, head).commit()
        try:
            if not write(branch):
                return False
            if _published(jvm, table, branch):
                return True
        except ColumnsChanged:
            # What is written is planned anew.
            pass
        finally:
            iceberg = jvm.iceberg_table(table)
            iceberg.manageSnapshots().removeBranch(branch).commit()
        time.sleep(_PAUSE_SECONDS)
    raise CommitRefused(f"{table}: {refused} ({_ATTEMPTS} times in a row)")


def _published(jvm: Jvm, table: str, branch: str) -> bool:
    """Fast-forward ``main``; False where it has moved."""
    references = jvm.iceberg_table(table).manageSnapshots()
    try:
        references.fastForwardBranch("main", branch).commit()
    except JAVA_ERRORS:
        return False
    return True
