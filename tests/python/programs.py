"""Programs that tests run to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

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
