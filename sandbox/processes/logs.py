"""Show the logs of services and of the demo's programs."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError

_BLOCK = 64 * 1024
_PAUSE_SECONDS = 0.3


def log_file(home: Home, component: str) -> Path:
    """The log of a service or program.

    Raises:
        ConfigurationError: There is no such log; the message lists the existing ones.
    """
    file = home.logs / f"{component}.log"
    if file.parent != home.logs or not file.is_file():
        there = sorted(path.stem for path in home.logs.glob("*.log"))
        known = f"there are: {', '.join(there)}" if there else "nothing has run yet: `sandbox up`"
        raise ConfigurationError(f"no log of {component!r} in {home.logs}; {known}")
    return file


def show(file: Path, lines: int) -> int:
    """Print the last lines; return the byte offset after them."""
    with file.open("rb") as log:
        end = position = log.seek(0, 2)
        text = b""
        while position > 0 and text.count(b"\n") <= lines:
            step = min(_BLOCK, position)
            position -= step
            log.seek(position)
            text = log.read(step) + text
    for line in text.decode(errors="replace").splitlines()[-lines:] if lines else []:
        print(line)
    return end


def follow(file: Path, position: int) -> None:
    """Print new lines of the log until interrupted."""
    try:
        while True:
            if file.exists() and file.stat().st_size < position:
                position = 0  # the log was rotated
            if file.exists() and file.stat().st_size > position:
                with file.open("rb") as log:
                    log.seek(position)
                    added = log.read()
                position += len(added)
                sys.stdout.write(added.decode(errors="replace"))
                sys.stdout.flush()
            time.sleep(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        return
