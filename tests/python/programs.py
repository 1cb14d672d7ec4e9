"""Programs that tests run to their end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from sandbox.settings import PROJECT


def ran(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = PROJECT,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    check: bool = False,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a program in the checkout, or elsewhere, and keep what it says."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=check,
    )


def assert_gone(pids: Path) -> None:
    """The programs whose numbers stand in a file end within a few seconds."""
    deadline = time.monotonic() + 10
    while any(_runs(int(pid)) for pid in pids.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
