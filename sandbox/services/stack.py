"""Start and stop the services, and report their status."""

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
from sandbox.services.cluster.s3 import S3
from sandbox.services.cluster.spark import SPARK_CLUSTER
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
# In start order. To add a service, add a module with a ``Service``, and an entry here.
SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        KAFKA,
        REGISTRY,
        REDSHIFT,
        THRIFT,
        POSTGRES,
        MARIADB,
        CONNECT,
        S3,
        SPARK_CLUSTER,
    )
}
# Several services under one name on the command line.
GROUPS = {"cdc": ("postgres", "mariadb", "connect")}


class State(StrEnum):
    """The state of a service."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    DIED = "died"


@dataclass(frozen=True)
class Status:
    """A service and its state.

    Attributes:
        state: From its process and its health check.
        record: Its process, if it was started and not stopped since.
    """

    service: Service
    state: State
    record: ProcessRecord | None


def chosen(names: Iterable[str]) -> list[Service]:
    """The named services and groups in start order; all if none is named.

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
    """The status of one service, by its health check."""
    record = read_record(service.folder(home))
    if record is None:
        return Status(service, State.STOPPED, None)
    if not is_alive(record):
        return Status(service, State.DIED, record)
    return Status(service, State.READY if service.is_ready(home) else State.STARTING, record)


def status(home: Home) -> list[Status]:
    """The status of every service."""
    return [status_of(home, service) for service in SERVICES.values()]


def work_lock(home: Home) -> AbstractContextManager[int]:
    """Lock of commands that start, stop or remove services of this sandbox."""
    return locked(home.path / "lock", "another `sandbox` command is running here")


def up(home: Home, names: Collection[str] = (), *, secure: bool = False) -> list[str]:
    """Start services, wait until they are ready, create topics and schemas.

    On failure or interrupt, the services that it started are stopped. Empty ``names`` start the
    default services. ``secure`` makes a sandbox without data secure; a secure sandbox stays
    secure. Returns the names of the started services.

    Raises:
        ConfigurationError: ``secure`` with existing data or with a service that does not support
            it; a service is unknown or not available for this platform.
        MillraceError: A binary is missing, a port is in use, or a service died.
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
        except BaseException:  # also after Ctrl-C
            for service in reversed(started):
                process.stop(service.folder(home))
            raise
        _write_env(home)
    return [service.name for service in started]


def down(home: Home, names: Iterable[str] = ()) -> list[str]:
    """Stop services and keep their data. Returns the names of those that were running."""
    services = chosen(names)
    if not home.services.exists():
        return []
    with work_lock(home):
        return [
            service.name for service in reversed(services) if process.stop(service.folder(home))
        ]


def died(record: ProcessRecord) -> MillraceError:
    """The error for a died service, with its last output."""
    lines = process.tail(record)
    output = "\n".join(["; last output:", *(f"  | {line}" for line in lines)]) if lines else ""
    return MillraceError(
        f"{record.name} (pid {record.pid}) died: see {record.log}, then `sandbox up`{output}"
    )


def _to_start(names: Collection[str]) -> list[Service]:
    """The services to start: with dependencies, without those unavailable on this platform."""
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
    """Start the service; if it had died, log the reason."""
    record = read_record(service.folder(home))
    if record is not None:
        say(f"{died(record)}", style="yellow")
        say(f"  starting {service.name} again, with its data", style="yellow")
    for name in service.listeners(home):
        port = home.ports[name]
        # A recently killed process may not have released it yet.
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
        say(f"  created {made}")


def _wait(home: Home, service: Service) -> None:
    """Wait until the service is ready; fail if it died or takes too long."""
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
    """Write ``NAME=value`` lines, for programs that read files instead of the environment."""
    text = "".join(f"{name}={value}\n" for name, value in home.environment().items())
    if not home.env_file.exists() or home.env_file.read_text() != text:
        home.env_file.write_text(text)
