"""Two words from a contestant to the benchmark: reading begins now, all is there now."""

from __future__ import annotations

import json
import time
from typing import Any

MARK = "bench"


def begin() -> None:
    """What comes before, such as the start of a JVM, does not count."""
    _say("begin")


def end() -> None:
    """All records are where a reader sees them."""
    _say("end")


def read(line: str) -> tuple[str, float] | None:
    """A mark and its moment, seconds since 1970; None where a line is something else."""
    if not line.startswith("{"):
        return None
    try:
        said: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(said, dict) or MARK not in said:
        return None
    return str(said[MARK]), float(said["at"])


def _say(what: str) -> None:
    print(json.dumps({MARK: what, "at": time.time()}), flush=True)
