"""What the sandbox must know of a service to run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.settings import Home


@dataclass(frozen=True)
class Service:
    """A server that the sandbox starts, asks and stops.

    Attributes:
        name: Its name on the command line.
        title: What it is, for a person.
        parts: The components it is made of (configurations of ``ivy.xml``).
        ports: Names of its listeners; the first is the one that clients use.
        command: The program and arguments that run it in the foreground.
        is_ready: Asks the running service whether it works; quick, and never raises.
        prepare: Makes its files and its data folder; called before every start, and
            changes nothing that is there already.
        settle: Brings the ready service to the state that the sandbox promises
            (topics, schemas); changes nothing when it is in that state. Returns a line
            for each thing that it made.
        secure_ports: Names of the listeners that it has besides in a secure sandbox.
        timeout: Seconds until it must be ready.
        needs: Names of the services that are started with it.
        is_asked_for: Only started when it is named.
        is_open_only: Cannot run in a secure sandbox.
        lacks_platform: Says why there is none for this machine; none where there is.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    ports: tuple[str, ...]
    command: Callable[[Home], list[str]]
    is_ready: Callable[[Home], bool]
    prepare: Callable[[Home], None] = lambda _home: None
    settle: Callable[[Home], list[str]] = lambda _home: []
    secure_ports: tuple[str, ...] = ()
    timeout: float = 90.0
    needs: tuple[str, ...] = ()
    is_asked_for: bool = False
    is_open_only: bool = False
    lacks_platform: Callable[[], str | None] = lambda: None

    def folder(self, home: Home) -> Path:
        """Its data, configuration and process record."""
        return home.services / self.name

    def listeners(self, home: Home) -> tuple[str, ...]:
        """Names of the ports that it listens on in this sandbox."""
        return (*self.ports, *(self.secure_ports if home.secure else ()))

    def log(self, home: Home) -> Path:
        return home.logs / f"{self.name}.log"

    def address(self, home: Home) -> str:
        return f"127.0.0.1:{home.ports[self.ports[0]]}"
