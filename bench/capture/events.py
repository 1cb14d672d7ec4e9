"""What the programs of the benchmark print, each event a line of JSON."""

from __future__ import annotations

import json
from typing import Any

READY, ROUND, CHANGES, ANSWER = "ready", "round", "changes", "answer"


def say(event: str, **facts: Any) -> None:
    """Print an event, so that who follows the program sees it at once."""
    print(json.dumps({"event": event, **facts}), flush=True)
