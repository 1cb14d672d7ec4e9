"""One at a time: a lock file that the operating system frees when its holder dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.ui import say


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
