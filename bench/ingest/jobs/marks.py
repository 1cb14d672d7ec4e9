"""Marks that a system prints for the benchmark: start of reading, all records visible."""

from __future__ import annotations

import json
import time
from typing import Any

MARK = "bench"


def begin() -> None:
    """Mark the start; time before it, such as JVM startup, does not count."""
    _say("begin")


def end() -> None:
    """Mark the end: all records are visible to readers."""
    _say("end")


def read(line: str) -> tuple[str, float] | None:
    """A mark and its time, in seconds since 1970; None if the line is no mark."""
    if not line.startswith("{"):
        return None
    try:
        parsed: Any = json.loads(line)
    except ValueError:
        return None
    if not isinstance(parsed, dict) or MARK not in parsed:
        return None
    return str(parsed[MARK]), float(parsed["at"])


def _say(what: str) -> None:
    print(json.dumps({MARK: what, "at": time.time()}), flush=True)
