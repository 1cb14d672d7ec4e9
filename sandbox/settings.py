"""Where the sandbox lives: its folder, its ports, and the files other programs read.

All state is under ``SANDBOX_HOME`` (default: ``.sandbox`` in the checkout), so that two
checkouts run side by side and `sandbox reset` knows all there is to remove.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from spark_ingest.errors import ConfigurationError

PROJECT = Path(__file__).resolve().parents[1]
DEFAULT_PORTS = {"kafka": 19092, "kafka-controller": 19093, "registry": 18081}
OFFSET_VARIABLE = "SANDBOX_PORT_OFFSET"


@dataclass(frozen=True)
class Home:
    """One sandbox.

    Attributes:
        path: The absolute folder of all its state.
        ports: TCP port on 127.0.0.1 by listener name (keys of ``DEFAULT_PORTS``).
    """

    path: Path
    ports: dict[str, int] = field(default_factory=lambda: dict(DEFAULT_PORTS))

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
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.ports['kafka']}"

    @property
    def registry_url(self) -> str:
        """Base of the Confluent-compatible API of the registry."""
        return f"http://127.0.0.1:{self.ports['registry']}/apis/ccompat/v7"

    def environment(self) -> dict[str, str]:
        """What a shell needs to use this sandbox from any program."""
        return {
            "SANDBOX_HOME": str(self.path),
            "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "SCHEMA_REGISTRY_URL": self.registry_url,
            "SPARK_CONF_DIR": str(self.spark_conf),
        }


def load_home(environment: dict[str, str] | None = None) -> Home:
    """The sandbox that ``SANDBOX_HOME`` names, with the ports its settings file gives.

    Where the settings file does not exist yet the defaults hold, moved by
    ``SANDBOX_PORT_OFFSET``.

    Raises:
        ConfigurationError: The settings file or the offset cannot be understood.
    """
    env = dict(os.environ) if environment is None else environment
    path = Path(env.get("SANDBOX_HOME") or PROJECT / ".sandbox").expanduser().resolve()
    settings = path / "settings.toml"
    if settings.exists():
        return Home(path, _ports_of(settings))
    offset = env.get(OFFSET_VARIABLE) or "0"
    if not offset.lstrip("-").isdigit():
        raise ConfigurationError(
            f"{OFFSET_VARIABLE} is {offset!r}: it must be a whole number"
        )
    return Home(path, {name: port + int(offset) for name, port in DEFAULT_PORTS.items()})


def save_settings(home: Home) -> None:
    """Write the settings file, so that later commands use the same ports."""
    home.path.mkdir(parents=True, exist_ok=True)
    lines = ["# Ports of this sandbox on 127.0.0.1; change them while it is down.", "[ports]"]
    lines += [f"{name} = {port}" for name, port in home.ports.items()]
    home.settings_file.write_text("\n".join(lines) + "\n")


def _ports_of(settings: Path) -> dict[str, int]:
    try:
        written = tomllib.loads(settings.read_text()).get("ports", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{settings}: {error}; mend or delete it") from error
    unknown = sorted(set(written) - set(DEFAULT_PORTS))
    if unknown:
        raise ConfigurationError(
            f"{settings}: unknown key ports.{unknown[0]}; known: {', '.join(DEFAULT_PORTS)}"
        )
    for name, port in written.items():
        if not isinstance(port, int) or not 1024 <= port <= 65535:
            raise ConfigurationError(
                f"{settings}: ports.{name} is {port!r}: a port is 1024 to 65535"
            )
    return DEFAULT_PORTS | written
