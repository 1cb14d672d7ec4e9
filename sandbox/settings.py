"""Settings of the sandbox: its folder, its ports, and the files that other programs read.

All state is under ``SANDBOX_HOME`` (default: ``.sandbox`` in the checkout), so that two
checkouts run side by side and `sandbox reset` can remove everything.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from spark_ingest.errors import ConfigurationError

PROJECT = Path(__file__).resolve().parents[1]
DEFAULT_PORTS = {
    "kafka": 19092,
    "kafka-controller": 19093,
    "kafka-certificates": 19094,
    "registry": 18081,
    "redshift": 15439,
    "redshift-postgres": 15432,
    "redshift-lake": 15440,
    "thrift": 10000,
    "postgres": 15433,
    "mariadb": 13306,
    "connect": 18083,
    "s3": 15000,
    "spark-cluster": 17077,
    "spark-cluster-ui": 17080,
}
OFFSET_VARIABLE = "SANDBOX_PORT_OFFSET"


@dataclass(frozen=True)
class Home:
    """One sandbox.

    Attributes:
        path: The absolute folder of all its state.
        ports: TCP port on 127.0.0.1 by listener name (keys of ``DEFAULT_PORTS``).
        offset: Added to all ports that were not set explicitly.
    """

    path: Path
    ports: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_PORTS))
    offset: int = 0

    @property
    def settings_file(self) -> Path:
        return self.path / "settings.toml"

    @property
    def env_file(self) -> Path:
        """``NAME=value`` lines that ``profiles/ingest.yml`` reads; written by `up`."""
        return self.path / "env"

    @property
    def lake(self) -> Path:
        return self.path / "lake"

    @property
    def lake_lock(self) -> Path:
        """Lock of the command that writes to the lake and builds its marts."""
        return self.path / "lake.lock"

    @property
    def services(self) -> Path:
        """One folder per service: its data, configuration and process record."""
        return self.path / "services"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def spark_conf(self) -> Path:
        """The rendered Spark configuration of this sandbox (a ``SPARK_CONF_DIR``)."""
        return self.path / "spark-conf"

    @property
    def security(self) -> Path:
        """Certificates and passwords of a secure sandbox; only its owner may read them."""
        return self.path / "security"

    @property
    def secure(self) -> bool:
        """Whether its servers use TLS and authentication; fixed while it has data."""
        return self.security.exists()

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.ports['kafka']}"

    @property
    def registry_url(self) -> str:
        """Base of the Confluent-compatible API of the registry."""
        scheme = "https" if self.secure else "http"
        return f"{scheme}://127.0.0.1:{self.ports['registry']}/apis/ccompat/v7"

    def environment(self) -> dict[str, str]:
        """Environment variables with which any program uses this sandbox."""
        return {
            "SANDBOX_HOME": str(self.path),
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "SCHEMA_REGISTRY_URL": self.registry_url,
            # No secrets: the target names the files that contain them.
            "SPARK_INGEST_TARGET": "secure" if self.secure else "sandbox",
            "REDSHIFT_STANDIN_PORT": str(self.ports["redshift"]),
            "SPARK_THRIFT_PORT": str(self.ports["thrift"]),
            "SANDBOX_POSTGRES_PORT": str(self.ports["postgres"]),
            "SANDBOX_MARIADB_PORT": str(self.ports["mariadb"]),
            "SPARK_CONF_DIR": str(self.spark_conf),
        }


def load_home(environment: dict[str, str] | None = None) -> Home:
    """The sandbox that ``SANDBOX_HOME`` names, with its ports.

    A port is the one that the settings file names, else the default moved by
    ``SANDBOX_PORT_OFFSET``, else by the offset that the settings file remembers.

    Raises:
        ConfigurationError: The settings file or the offset is invalid.
    """
    env = dict(os.environ) if environment is None else environment
    path = Path(env.get("SANDBOX_HOME") or PROJECT / ".sandbox").expanduser().resolve()
    chosen, offset = _read_settings(path / "settings.toml")
    given = env.get(OFFSET_VARIABLE)
    if given:
        if not given.lstrip("-").isdigit():
            raise ConfigurationError(f"{OFFSET_VARIABLE} is {given!r}: it must be a whole number")
        offset = int(given)
    return with_ports(Home(path), chosen, offset)


def with_ports(home: Home, chosen: dict[str, int], offset: int | None = None) -> Home:
    """The same sandbox on other ports.

    ``chosen`` is by listener name; the others keep their default, moved by ``offset``, or as it
    was.

    Raises:
        ConfigurationError: An unknown listener, a number that is no port, or one
            port for two listeners.
    """
    offset = home.offset if offset is None else offset
    for name, port in chosen.items():
        if name not in DEFAULT_PORTS:
            raise ConfigurationError(
                f"there is no port named {name!r}; known: {', '.join(DEFAULT_PORTS)}"
            )
        if isinstance(port, bool) or not isinstance(port, int):
            raise ConfigurationError(f"port {name} is {port!r}: it must be a whole number")
    ports = {name: port + offset for name, port in DEFAULT_PORTS.items()} | chosen
    for name, port in ports.items():
        if not 1024 <= port <= 65535:
            raise ConfigurationError(f"port {name} is {port}: a port is 1024 to 65535")
    twice = {port: name for name, port in ports.items()}
    for name, port in ports.items():
        if twice[port] != name:
            raise ConfigurationError(f"ports {name} and {twice[port]} are both {port}")
    return Home(home.path, ports, offset)


def chosen_ports(home: Home) -> dict[str, int]:
    """The ports that were set explicitly."""
    return {
        name: port for name, port in home.ports.items() if port != DEFAULT_PORTS[name] + home.offset
    }


def save_settings(home: Home) -> None:
    """Write the settings file, so that later commands use the same ports."""
    home.path.mkdir(parents=True, exist_ok=True)
    lines = [
        "# Ports of this sandbox on 127.0.0.1; change them while it is down.",
        "# port_offset moves the defaults: "
        + ", ".join(f"{name} {port}" for name, port in DEFAULT_PORTS.items()),
        f"port_offset = {home.offset}",
        "",
        "[ports]",
    ]
    lines += [f"{name} = {port}" for name, port in chosen_ports(home).items()]
    text = "\n".join(lines) + "\n"
    if not home.settings_file.exists() or home.settings_file.read_text() != text:
        home.settings_file.write_text(text)


def _read_settings(file: Path) -> tuple[dict[str, int], int]:
    """Chosen ports and the offset."""
    if not file.exists():
        return {}, 0
    try:
        read = tomllib.loads(file.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: {error}; fix or delete it") from error
    unknown = sorted(set(read) - {"port_offset", "ports"})
    if unknown:
        raise ConfigurationError(f"{file}: unknown key {unknown[0]}; known: port_offset, ports")
    chosen, offset = read.get("ports", {}), read.get("port_offset", 0)
    if not isinstance(chosen, dict) or not isinstance(offset, int):
        raise ConfigurationError(f"{file}: port_offset is a number and ports a table")
    try:
        with_ports(Home(file.parent), chosen, offset)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    return chosen, offset
