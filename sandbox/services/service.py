"""The definition of a service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sandbox.settings import Home


@dataclass(frozen=True)
class Service:
    """A server of the sandbox.

    Attributes:
        name: Its name on the command line.
        title: Its title in messages.
        parts: Its components (configurations of ``ivy.xml``).
        ports: Names of its listeners; the first is the one that clients use.
        command: The program and arguments that run it in the foreground.
        is_ready: Health check of the running service; fast, and never raises.
        prepare: Creates its files and data folder before every start; idempotent.
        settle: Creates topics, schemas and the like when the service is ready; idempotent.
            Returns a line for each object that it created.
        secure_ports: Names of additional listeners in a secure sandbox.
        timeout: Seconds until it must be ready.
        needs: Names of the services that it depends on.
        is_asked_for: Started only on request.
        is_open_only: Not supported in a secure sandbox.
        lacks_platform: The reason why it is not available on this platform, or None.
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
