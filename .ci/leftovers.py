"""End the processes that `.ci/run` started and that outlived it; fail when there were any."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import psutil


def leftovers(mark: str) -> list[psutil.Process]:
    """The processes that bear the mark, without this one and its ancestors."""
    ours = {os.getpid(), *(process.pid for process in psutil.Process().parents())}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid in ours or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get("MILLRACE_CI_RUN") == mark:
                found.append(process)
        except psutil.Error:
            # Another person's process, or one that ended while we looked.
            continue
    return found


def main() -> int:
    """Name and end what is left; 1 when there was something.

    A JVM takes some seconds to see that its Python has ended, and to follow.
    """
    found = psutil.wait_procs(leftovers(os.environ["MILLRACE_CI_RUN"]), timeout=30)[1]
    for process in found:
        with suppress(psutil.Error):
            command = " ".join(process.cmdline())
            print(f"left running: {process.pid}: {command[:160]}", file=sys.stderr)
            process.terminate()
    for process in psutil.wait_procs(found, timeout=20)[1]:
        with suppress(psutil.Error):
            process.kill()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
