"""Client of Kafka Connect's REST API, for the single worker of the sandbox."""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing
from typing import Any

from sandbox.settings import Home
from spark_ingest.errors import MillraceError, ServiceUnavailable

_SECONDS = 30.0
_FIRST_REFUSAL, _CONFLICT = 400, 409


def is_healthy(home: Home) -> bool:
    """Whether the worker accepts requests."""
    try:
        code, answer = _ask(home, "GET", "/health", seconds=5)
    except (OSError, http.client.HTTPException):
        return False
    return code < _FIRST_REFUSAL and bool(json.loads(answer)["status"] == "healthy")


def connectors(home: Home) -> dict[str, Any]:
    """The connectors with their ``status`` and ``info``, by name."""
    return dict(request(home, "GET", "/connectors?expand=status&expand=info"))


def source_offset(home: Home, name: str) -> dict[str, Any]:
    """The committed source offset of a connector; empty if there is none."""
    found = request(home, "GET", f"/connectors/{name}/offsets")["offsets"]
    return dict(found[0]["offset"] or {}) if found else {}


def request(home: Home, method: str, path: str, body: object = None) -> Any:
    """Send a request, with retries during a rebalance.

    Raises:
        ServiceUnavailable: Connect is down.
        MillraceError: Connect returned an error; the message contains it.
    """
    begun = time.monotonic()
    while True:
        try:
            code, answer = _ask(home, method, path, body)
        except (OSError, http.client.HTTPException) as error:
            raise ServiceUnavailable(
                f"Connect at 127.0.0.1:{home.ports['connect']} does not answer: `sandbox up cdc`"
            ) from error
        if code < _FIRST_REFUSAL:
            return json.loads(answer) if answer else None
        if code != _CONFLICT or time.monotonic() - begun > _SECONDS:
            raise MillraceError(f"Connect refuses {method} {path}: {_words(answer)}")
        time.sleep(0.3)


def _ask(
    home: Home, method: str, path: str, body: object = None, seconds: float = _SECONDS
) -> tuple[int, bytes]:
    """Status code and body of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", home.ports["connect"], timeout=seconds)
    with closing(connection):
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def _words(answer: bytes) -> str:
    text = answer.decode(errors="replace")
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
