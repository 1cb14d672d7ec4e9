"""Fail when a process that `.ci/run` started outlives its step."""

from __future__ import annotations

import os
import sys

import psutil


def leftovers(mark: str) -> list[str]:
    """Command lines of the processes that bear the mark, without our own ancestors."""
    ours = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid in ours or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get("MILLRACE_CI_RUN") == mark:
                found.append(f"{process.pid}: {' '.join(process.cmdline())[:160]}")
        except psutil.Error:
            # Another person's process, or one that ended while we looked.
            continue
    return found


def main() -> int:
    """Print what is left; 1 when there is something."""
    found = leftovers(os.environ["MILLRACE_CI_RUN"])
    for line in found:
        print(f"left running: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
