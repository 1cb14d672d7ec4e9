"""Lock files that the operating system releases when their holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.ui import say
from spark_ingest.errors import ConfigurationError


@contextmanager
def locked(file: Path, holder: str) -> Iterator[int]:
    """Acquire the lock, and log a message if it has to wait.

    Args:
        file: The lock file; it stays behind, unlocked.
        holder: Who may have the lock, for the message, such as "another `sandbox up` is running".

    Yields:
        The lock's file descriptor: a child that inherits it also holds the lock until it
        exits, even if this process is killed.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{holder}: waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle.fileno()


@contextmanager
def claimed(file: Path, claimant: str) -> Iterator[int]:
    """Acquire the lock, or fail at once if another process has it.

    Args:
        file: The lock file; it stays behind, unlocked.
        claimant: What this program is, such as "`sandbox demo`".

    Yields:
        The lock's file descriptor, as :func:`locked` does.

    Raises:
        ConfigurationError: Another process has it; the message says which.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "another program"
            raise ConfigurationError(
                f"{holder}, or a child of it, is using the lake of {file.parent}:"
                " wait until it has finished, or stop it"
            ) from None
        handle.truncate(0)
        handle.write(f"{claimant} (pid {os.getpid()})\n")
        handle.flush()
        yield handle.fileno()
