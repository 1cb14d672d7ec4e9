"""Bring the services up, take them down, tell how they are."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum

from sandbox.install import parts, spark_conf
from sandbox.processes import process
from sandbox.processes.locks import locked
from sandbox.processes.process import ProcessRecord, is_alive, read_record
from sandbox.services.connect import CONNECT
from sandbox.services.kafka import KAFKA
from sandbox.services.mariadb import MARIADB
from sandbox.services.postgres import POSTGRES
from sandbox.services.redshift import REDSHIFT
from sandbox.services.registry import REGISTRY
from sandbox.services.security import make_secure
from sandbox.services.service import Service
from sandbox.services.thrift import THRIFT
from sandbox.settings import Home, save_settings
from sandbox.ui import say
from spark_ingest.errors import ConfigurationError, MillraceError
from spark_ingest.lake.preflight import check_disk, check_java

POLL_SECONDS = 0.1
_RELEASE_SECONDS = 10.0
# In the order in which they start. A new one is a module beside this one that makes a
# ``Service``, and an entry here.
SERVICES: dict[str, Service] = {
    service.name: service
    for service in (KAFKA, REGISTRY, REDSHIFT, THRIFT, POSTGRES, MARIADB, CONNECT)
}
# Several services under one name on the command line.
GROUPS = {"cdc": ("postgres", "mariadb", "connect")}


class State(StrEnum):
    """How a service is."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    DIED = "died"


@dataclass(frozen=True)
class Status:
    """A service and how it is.

    Attributes:
        state: Asked of the process and of the service itself.
        record: Its process, when it was started and not taken down since.
    """

    service: Service
    state: State
    record: ProcessRecord | None


def chosen(names: Iterable[str]) -> list[Service]:
    """The named services and groups in starting order; all when none is named.

    Raises:
        ConfigurationError: There is no such service.
    """
    named = set(names)
    unknown = sorted(named - set(SERVICES) - set(GROUPS))
    if unknown:
        raise ConfigurationError(
            f"there is no service {unknown[0]!r}; known: {', '.join([*SERVICES, *GROUPS])}"
        )
    wanted = {each for name in named for each in GROUPS.get(name, (name,))}
    return [service for service in SERVICES.values() if not wanted or service.name in wanted]


def status_of(home: Home, service: Service) -> Status:
    """How one service is, by asking it."""
    record = read_record(service.folder(home))
    if record is None:
        return Status(service, State.STOPPED, None)
    if not is_alive(record):
        return Status(service, State.DIED, record)
    return Status(service, State.READY if service.is_ready(home) else State.STARTING, record)


def status(home: Home) -> list[Status]:
    """How every service is."""
    return [status_of(home, service) for service in SERVICES.values()]


def work_lock(home: Home) -> AbstractContextManager[int]:
    """Held by whoever starts, stops or removes services of this sandbox."""
    return locked(home.path / "lock", "another `sandbox` command is at work here")


def up(home: Home, names: Collection[str] = (), *, secure: bool = False) -> list[str]:
    """Start what does not run yet, wait until it works, make topics and schemas.

    When it fails or is interrupted, what it started is stopped again. Without ``names``, all
    but those that must be asked for. ``secure`` makes a sandbox secure that has no data yet;
    one that is secure stays so. Returns the names of the services that were started now.

    Raises:
        ConfigurationError: It shall be secure, and has data from before or a service
            that cannot be; there is no such service for this machine.
        MillraceError: Something is missing, a port is taken, or a service died.
    """
    services = _to_start(names)
    if secure or home.secure:
        _refuse_open_only(services)
    check_java()
    check_disk(home.path)
    home.path.mkdir(parents=True, exist_ok=True)
    with work_lock(home):
        if secure:
            make_secure(home)
        _refuse_moved_ports(home, services)
        save_settings(home)
        parts.fetch(part for service in services for part in service.parts)
        spark_conf.render(home, home.spark_conf)
        started: list[Service] = []
        try:
            for service in services:
                if not _runs(service, home):
                    started.append(service)
                    _start(home, service)
            for service in services:
                _wait(home, service)
            for service in services:
                _settle(home, service)
        except BaseException:  # an interrupted `up` leaves nothing behind either
            for service in reversed(started):
                process.stop(service.folder(home))
            raise
        _write_env(home)
    return [service.name for service in started]


def down(home: Home, names: Iterable[str] = ()) -> list[str]:
    """Stop services; their data stay. Returns the names of those that ran."""
    services = chosen(names)
    if not home.services.exists():
        return []
    with work_lock(home):
        return [
            service.name for service in reversed(services) if process.stop(service.folder(home))
        ]


def died(record: ProcessRecord) -> MillraceError:
    """The error that shows what a dead service said last."""
    lines = process.tail(record)
    said = "\n".join(["; it said last:", *(f"  | {line}" for line in lines)]) if lines else ""
    return MillraceError(
        f"{record.name} (pid {record.pid}) died: see {record.log}, then `sandbox up`{said}"
    )


def _to_start(names: Collection[str]) -> list[Service]:
    """What `up` means by these names: with what they need, without what cannot be here."""
    services = [s for s in chosen(names) if names or not s.is_asked_for]
    needed = {need for service in services for need in service.needs}
    services = chosen({service.name for service in services} | needed)
    for service in list(services):
        reason = service.lacks_platform()
        if reason and service.name in names:
            raise ConfigurationError(reason)
        if reason:
            say(f"{service.name} is left out: {reason}", style="yellow")
            services.remove(service)
    return services


def _refuse_open_only(services: list[Service]) -> None:
    names = [service.name for service in services if service.is_open_only]
    if names:
        raise ConfigurationError(
            f"{', '.join(names)} cannot run in a secure sandbox yet: choose another"
            " SANDBOX_HOME without --secure for them"
        )


def _refuse_moved_ports(home: Home, services: list[Service]) -> None:
    for service in services:
        record = read_record(service.folder(home))
        if record is None or not is_alive(record):
            continue
        for name in service.listeners(home):
            if record.ports.get(name, home.ports[name]) != home.ports[name]:
                raise ConfigurationError(
                    f"{service.name} runs with port {name} {record.ports[name]}, not"
                    f" {home.ports[name]}: `sandbox down`, then `sandbox up` again"
                )


def _runs(service: Service, home: Home) -> bool:
    record = read_record(service.folder(home))
    return record is not None and is_alive(record)


def _start(home: Home, service: Service) -> None:
    """Start the service; say what became of it when it had died."""
    record = read_record(service.folder(home))
    if record is not None:
        say(f"{died(record)}", style="yellow")
        say(f"  starting {service.name} again, with its data", style="yellow")
    for name in service.listeners(home):
        port = home.ports[name]
        # One that was killed a moment ago may not have let go of it.
        if not process.becomes_free(port, _RELEASE_SECONDS if record else 0):
            raise ConfigurationError(
                f"port {port} of {service.name} is taken by {process.port_holder(port)}: end it,"
                f" or `sandbox up --port {name}={port + 10000}` (SANDBOX_PORT_OFFSET moves all)"
            )
    service.prepare(home)
    process.start(
        service.name,
        service.command(home),
        service.folder(home),
        service.log(home),
        {name: home.ports[name] for name in service.listeners(home)},
        f"{service.name} {home.path}",
    )


def _settle(home: Home, service: Service) -> None:
    for made in service.settle(home):
        say(f"  made {made}")


def _wait(home: Home, service: Service) -> None:
    """Ask until the service is ready; stop asking when it died or takes too long."""
    record = read_record(service.folder(home))
    if record is None:
        raise MillraceError(f"{service.name} was stopped by another program: `sandbox up` again")
    begun = time.monotonic()
    while not service.is_ready(home):
        if not is_alive(record):
            raise died(record)
        if time.monotonic() - begun > service.timeout:
            raise MillraceError(
                f"{service.name} is not ready after {service.timeout:.0f} s: see {record.log}"
            )
        time.sleep(POLL_SECONDS)


def _write_env(home: Home) -> None:
    """``NAME=value`` lines, for programs that read files instead of the environment."""
    text = "".join(f"{name}={value}\n" for name, value in home.environment().items())
    if not home.env_file.exists() or home.env_file.read_text() != text:
        home.env_file.write_text(text)
