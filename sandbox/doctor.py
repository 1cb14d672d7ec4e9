"""Check the requirements of Millrace on this machine and suggest fixes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sandbox.install import parts, spark_conf
from sandbox.processes import process
from sandbox.services import stack
from sandbox.services.connect import FAILED, connector_status, describe
from sandbox.services.kafka import missing_topics
from sandbox.services.registry import missing_subjects
from sandbox.services.stack import State
from sandbox.settings import Home, load_home
from spark_ingest.errors import MillraceError
from spark_ingest.lake.preflight import (
    check_disk,
    check_java,
    check_spark_home,
    java_program,
    pyspark_folder,
)

MIN_PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        name: What was checked.
        good: Whether it passed.
        text: What was found, with a fix if it failed.
    """

    name: str
    good: bool
    text: str


def examine() -> Iterator[Finding]:
    """Run all checks; each result is yielded as soon as it is known."""
    yield _check("Python", _python)
    yield _check("Java", _java)
    yield _check("Spark", _spark)
    try:
        home = load_home()
    except MillraceError as error:
        yield Finding("settings", False, str(error))
        return
    yield _check("settings", lambda: f"{home.path}")
    yield _check("disk, data", lambda: f"{check_disk(home.path) // 1024**2} MB free")
    yield _check("disk, parts", lambda: f"{check_disk(parts.cache_folder()) // 1024**2} MB free")
    for component in (*parts.components(), *_fetched_for_capture()):
        yield _check(f"part {component}", partial(_part, component))
    yield _check("lake", lambda: _lake(home))
    yield from _services(home)


def _check(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except MillraceError as error:
        return Finding(name, False, str(error))


def _python() -> str:
    version = sys.version.split()[0]
    if sys.version_info[:2] < MIN_PYTHON:
        raise MillraceError(f"{version}; Millrace needs 3.11 or later: install it, `make install`")
    return version


def _java() -> str:
    return f"{check_java()} ({java_program()})"


def _spark() -> str:
    check_spark_home()
    return f"{pyspark_folder()}"


def _fetched_for_capture() -> list[str]:
    """Binaries for change data capture that were downloaded on request."""
    wanted = {part for name in stack.GROUPS["cdc"] for part in stack.SERVICES[name].parts}
    private = wanted - set(parts.components())
    return sorted(part for part in private if parts.component_folder(part).exists())


def _part(component: str) -> str:
    if not parts.is_complete(component):
        raise MillraceError(f"not complete: `sandbox parts {component}`")
    damaged = parts.damaged(component)
    if damaged:
        raise MillraceError(
            f"{damaged[0]} differs from the downloaded file: `sandbox parts --check {component}`"
        )
    return f"{parts.component_folder(component)}"


def _lake(home: Home) -> str:
    """Check that commands run by hand open the same lake as the sandbox's commands."""
    conf_dir = os.environ.get("SPARK_CONF_DIR")
    conf = Path(conf_dir) if conf_dir else spark_conf.environment_conf()
    opened = spark_conf.rendered_home(conf)
    if opened is not None and opened.resolve() == home.path:
        return f"{home.lake}"
    if conf_dir:
        raise MillraceError(
            f"SPARK_CONF_DIR is {conf_dir}, which does not open the lake of {home.path}:"
            ' unset SPARK_CONF_DIR, or eval "$(sandbox env)"'
        )
    if opened is None:
        raise MillraceError(f"this environment's Spark knows no lake ({conf}): `make install`")
    raise MillraceError(
        f"dbt and Spark open the lake of {opened}, the sandbox is {home.path}:"
        ' eval "$(sandbox env)" for this shell, or `make install` for good'
    )


def _services(home: Home) -> Iterator[Finding]:
    ready: set[str] = set()
    for found in stack.status(home):
        name = found.service.name
        if found.state is State.READY:
            ready.add(name)
            yield Finding(name, True, f"ready at {found.service.address(home)}")
        elif found.state is State.DIED and found.record is not None:
            yield Finding(name, False, str(stack.died(found.record)))
        elif found.state is State.STARTING and found.record is not None:
            text = f"runs (pid {found.record.pid}) but does not respond: see {found.record.log}"
            yield Finding(name, False, text)
        else:
            yield from _stopped(home, name, found.service.listeners(home))
    if "kafka" in ready:
        yield _check("topics", lambda: _nothing_missing("topic", missing_topics(home)))
    if "connect" in ready:
        yield _check("connectors", lambda: _connectors(home))
    if "registry" in ready:
        yield _check("schemas", lambda: _nothing_missing("subject", missing_subjects(home)))


def _stopped(home: Home, name: str, ports: tuple[str, ...]) -> Iterator[Finding]:
    """A stopped service is no failure, but a port in use is."""
    taken = [port for port in ports if not process.port_is_free(home.ports[port])]
    for port in taken:
        number = home.ports[port]
        holder = process.port_holder(number)
        fix = f"end it, or `sandbox up --port {port}={number + 10000}`"
        yield Finding(name, False, f"port {number} is taken by {holder}: {fix}")
    if not taken:
        yield Finding(name, True, f"stopped, its ports are free: `sandbox up {name}` starts it")


def _connectors(home: Home) -> str:
    found = connector_status(home)
    for each in found:
        if each.state == FAILED:
            raise MillraceError(describe(each))
    return ", ".join(f"{each.name} {each.state}" for each in found) or "none"


def _nothing_missing(kind: str, missing: list[str]) -> str:
    if missing:
        raise MillraceError(f"{kind} {', '.join(missing)} missing: `sandbox up` makes it")
    return "all there"
