"""One at a time: a lock file that the operating system frees when its holder dies."""

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
    """Hold the lock; wait for whoever has it, saying so.

    Args:
        file: The lock file; it stays behind, unlocked.
        holder: What to tell while waiting, such as "another `sandbox up` is at work".

    Yields:
        The lock's file descriptor: a child that inherits it holds the lock as well,
        until it ends, even when this process is killed.
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
    """Hold the lock, or refuse at once when another has it.

    Args:
        file: The lock file; it stays behind, unlocked.
        claimant: What this program is, such as "`sandbox demo`".

    Yields:
        The lock's file descriptor, as :func:`locked` does.

    Raises:
        ConfigurationError: Another has it; the message says which.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "another program"
            raise ConfigurationError(
                f"{holder}, or what it started, is at work on the lake of {file.parent}:"
                " wait for its end, or end it first"
            ) from None
        handle.truncate(0)
        handle.write(f"{claimant} (pid {os.getpid()})\n")
        handle.flush()
        yield handle.fileno()
