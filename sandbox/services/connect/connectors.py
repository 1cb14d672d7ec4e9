"""The connectors: create them from their files, restart them, wait for them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sandbox.processes.process import is_alive, read_record
from sandbox.services.connect import rest
from sandbox.services.connect.position import database_of, log_end, passed
from sandbox.settings import PROJECT, Home
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError, MillraceError, ServiceUnavailable

CONNECTORS = PROJECT / "sandbox" / "connectors"
RUNNING, FAILED = "running", "failed"
RUNBOOK = "docs/runbooks/connector.md"
_ON_THE_WAY = ("starting", "unassigned", "restarting")

_WORDS = 300
_POLL_SECONDS = 0.3
_SETTLE_SECONDS = 60.0
# Do not wait longer for a connector that has more to read.
_RELAPSE_SECONDS = 90.0
_RESTART_SECONDS = 10.0
_LOG_SECONDS = 5.0
_PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class ConnectorStatus:
    """A connector and its state.

    Attributes:
        state: The state in Connect, such as ``running`` or ``failed``.
        behind: Lag in bytes of the database's log; None during the initial snapshot, or if it
            is unknown.
    """

    name: str
    state: str
    reason: str | None
    behind: int | None


def declared() -> dict[str, dict[str, str]]:
    """The configuration of the sandbox's connectors, by name."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(CONNECTORS.glob("*.json"))}


def apply_connectors(home: Home, names: Collection[str] = ()) -> list[str]:
    """Create or update connectors, and restart failed ones.

    Connect must be running. Empty ``names`` select all whose database is running. Returns a line
    for each connector that was created or updated.

    Raises:
        ConfigurationError: There is no such connector.
        MillraceError: Connect rejects one, or does not start it.
    """
    known = declared()
    for name in names:
        if name not in known:
            raise ConfigurationError(f"there is no connector {name!r}; known: {', '.join(known)}")
    wanted = {
        name: config
        for name, config in known.items()
        if (name in names if names else _runs(home, database_of(config)))
    }
    present = rest.connectors(home)
    made = []
    for name, config in wanted.items():
        if name in present and present[name]["info"]["config"] == config | {"name": name}:
            continue
        rest.request(home, "PUT", f"/connectors/{name}/config", config)
        made.append(f"connector {name}")
    _wait_until_started(home, wanted)
    _restart_failed(home, wanted)
    return made


def connector_status(home: Home) -> list[ConnectorStatus]:
    """The status of each connector.

    Raises:
        ServiceUnavailable: Connect is down.
    """
    found = []
    for name, about in sorted(rest.connectors(home).items()):
        state, reason = _state(about["status"])
        behind = _behind(home, name, about["info"]["config"])
        found.append(ConnectorStatus(name, state, reason, behind))
    return found


def wait_until_passed(home: Home, connector: str) -> None:
    """Wait until all changes committed so far in a connector's database are in Kafka.

    Raises:
        ServiceUnavailable: Connect or the database is down.
        MillraceError: The connector has failed, does not exist, or makes no progress.
    """
    about = rest.connectors(home).get(connector)
    if about is None:
        raise MillraceError(f"there is no connector {connector}: `sandbox up cdc`")
    config = about["info"]["config"]
    end = log_end(home, config)
    if end is None:
        raise MillraceError(f"connector {connector} reads no database of the sandbox")
    last, logged, moved = None, time.monotonic(), time.monotonic()
    while True:
        at = passed(home, config, rest.source_offset(home, connector))
        if at is not None and at >= end:
            return
        now = time.monotonic()
        if at != last:
            last, moved = at, now
        _refuse_failed(home, connector)
        if now - moved > _PATIENCE_SECONDS:
            raise MillraceError(
                f"connector {connector} has made no progress for {_PATIENCE_SECONDS:.0f} s:"
                " `sandbox logs connect`"
            )
        if now - logged > _LOG_SECONDS:
            logged = now
            say(f"  {connector}: {_distance(None if at is None else end - at)}")
        time.sleep(_POLL_SECONDS)


def describe(status: ConnectorStatus) -> str:
    """One line about the status of a connector."""
    if status.reason is not None:
        return f"{status.name}: {status.reason} (see {RUNBOOK})"
    return f"{status.name}: {_distance(status.behind)}"


def _distance(behind: int | None) -> str:
    if behind is None:
        return "initial snapshot in progress"
    return f"{behind:,} bytes of the database's log behind"


def _behind(home: Home, name: str, config: Mapping[str, str]) -> int | None:
    try:
        at = passed(home, config, rest.source_offset(home, name))
        end = log_end(home, config)
    except ServiceUnavailable:
        return None
    return None if at is None or end is None else max(0, end - at)


def _state(status: Mapping[str, Any]) -> tuple[str, str | None]:
    """The state of a connector and its tasks, with the reason of a failure."""
    parts = [status["connector"], *status["tasks"]]
    for part in parts:
        if part["state"] == "FAILED":
            return FAILED, _reason(part.get("trace", ""))
    if not status["tasks"]:
        return "starting", None
    states = [str(part["state"]).lower() for part in parts]
    return next((state for state in states if state != RUNNING), RUNNING), None


def _reason(trace: str) -> str:
    """The root cause of a Java stack trace, on one line."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    cause = causes[-1].removeprefix("Caused by: ") if causes else (lines or ["unknown"])[0]
    error, colon, words = cause.partition(": ")
    if len(words) > _WORDS:
        # Debezium's messages have the operation at the start and the error at the end.
        words = f"{words[: _WORDS // 2]} … {words[-_WORDS // 2 :]}"
    return f"{error.rpartition('.')[2]}{colon}{words}"


def _refuse_failed(home: Home, connector: str) -> None:
    status = rest.request(home, "GET", f"/connectors/{connector}/status")
    state, reason = _state(status)
    if state == FAILED:
        raise MillraceError(f"connector {connector} has failed: {reason}; see {RUNBOOK}")


def _wait_until_started(home: Home, names: Collection[str]) -> None:
    def started(name: str, found: Mapping[str, Any]) -> bool:
        return name in found and _state(found[name]["status"])[0] not in _ON_THE_WAY

    def all_started() -> bool:
        found = rest.connectors(home)
        return all(started(name, found) for name in names)

    if not _becomes(all_started, _SETTLE_SECONDS):
        raise MillraceError(
            f"Connect has not started its connectors after {_SETTLE_SECONDS:.0f} s:"
            " `sandbox logs connect`"
        )


def _restart_failed(home: Home, names: Collection[str]) -> None:
    """Restart failed connectors, and check that they do not fail again."""
    found = rest.connectors(home)
    for name in names:
        if _state(found[name]["status"])[0] != FAILED:
            continue
        say(f"  connector {name} had failed: restarting it", style="yellow")
        config = found[name]["info"]["config"]
        path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
        rest.request(home, "POST", path)
        # Connect responds before the restart.
        _becomes(partial(_is_no_more_failed, home, name), _RESTART_SECONDS)
        # Beyond this position it has passed what it failed on.
        end = log_end(home, config)
        _becomes(partial(_is_decided, home, name, config, end), _RELAPSE_SECONDS)


def _is_no_more_failed(home: Home, name: str) -> bool:
    status = rest.request(home, "GET", f"/connectors/{name}/status")
    return _state(status)[0] != FAILED


def _is_decided(home: Home, name: str, config: Mapping[str, str], end: int | None) -> bool:
    """Whether it is known if a restarted connector fails again."""
    status = rest.request(home, "GET", f"/connectors/{name}/status")
    if _state(status)[0] == FAILED:
        return True
    at = passed(home, config, rest.source_offset(home, name))
    return end is None or (at is not None and at >= end)


def _becomes(what: Callable[[], bool], seconds: float) -> bool:
    """Whether a condition becomes true within some seconds."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _runs(home: Home, service: str | None) -> bool:
    record = read_record(home.services / service) if service else None
    return record is not None and is_alive(record)
