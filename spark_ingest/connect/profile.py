"""The connection profile, ``profiles/ingest.yml``, validated when loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_ingest.connect import client_settings
from spark_ingest.errors import ConfigurationError, first_problem

# ${NAME} or ${NAME:-default}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
# ${file:PATH}, where the path may contain variables; or a variable.
_REFERENCE = re.compile(rf"\$\{{file:((?:[^{{}}]|{_VARIABLE.pattern})+)\}}|{_VARIABLE.pattern}")
_GLUE = re.compile(r"arn:aws[a-z-]*:glue:[a-z0-9-]+:\d{12}:registry/[\w$#.-]+")
_REGISTRY_TLS = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Registry(_Strict):
    """A schema registry with the Confluent API, or of AWS Glue.

    Attributes:
        url: Base URL of the API, without credentials; for Glue, the ARN of the registry.
        username: The user for basic authentication, with ``password``.
        tls: Certificates by the names that Kafka properties have (``ssl.ca.location``…).
    """

    url: str
    username: str | None = None
    password: str | None = Field(default=None, repr=False)
    tls: dict[str, str] = {}

    @property
    def is_glue(self) -> bool:
        return self.url.startswith("arn:")


class Connections(_Strict):
    """The services of one target.

    Attributes:
        kafka: Kafka client properties (see ``client_settings``); values may be secret and are
            therefore not in the representation.
    """

    name: str
    kafka: dict[str, str] = Field(repr=False)
    registry: Registry = Field(repr=False)

    @property
    def bootstrap_servers(self) -> str:
        return self.kafka["bootstrap.servers"]


class _Target(_Strict):
    env_file: str | None = None
    kafka: dict[str, str]
    registry: dict[str, str]
    databases: dict[str, dict[str, str]] = {}
    alerts: dict[str, str] = {}


class _Profile(_Strict):
    target: str
    targets: dict[str, _Target]


@dataclass(frozen=True)
class Target:
    """One target of the file before variables are replaced, and their values.

    Attributes:
        where: The file and the key, for messages.
        sections: ``kafka`` and ``registry``.
        databases: One section per captured database.
        alerts: Destinations of alerts; may be empty.
        values: The values of variables.
    """

    name: str
    where: str
    sections: dict[str, dict[str, str]]
    databases: dict[str, dict[str, str]]
    alerts: dict[str, str]
    values: dict[str, str] = field(repr=False)

    def filled(self, settings: Mapping[str, str], where: str) -> dict[str, str]:
        """Settings with their references replaced.

        Raises:
            ConfigurationError: A variable has no value, or a file cannot be read.
        """
        return {
            key: value
            for key, text in settings.items()
            # An empty value, such as a variable's empty default, omits the setting.
            if (value := _fill(text, self.values, f"{where}.{key}"))
        }


def load_connections(
    file: Path, target: str | None, environment: Mapping[str, str] | None = None
) -> Connections:
    """Read one target of the profile and replace its variables.

    ``target`` None selects the profile's default. ``environment``, by default that of the
    process, overrides the target's ``env_file``, whose path is relative to the parent of the
    profile's folder.

    Raises:
        ConfigurationError: The file is missing or malformed, the target is unknown, a key
            is missing, or a variable has no value.
    """
    chosen = read_target(file, target, environment)
    filled = {
        section: chosen.filled(settings, f"{chosen.where}.{section}")
        for section, settings in chosen.sections.items()
    }
    client_settings.check(filled["kafka"], f"{chosen.where}.kafka")
    return Connections(
        name=chosen.name,
        kafka=filled["kafka"],
        registry=_registry(filled["registry"], f"{chosen.where}.registry"),
    )


def read_target(
    file: Path, target: str | None, environment: Mapping[str, str] | None = None
) -> Target:
    """Read one target of the profile, without replacing variables.

    The arguments are those of :func:`load_connections`.

    Raises:
        ConfigurationError: The file is missing or malformed, or the target is unknown.
    """
    env = os.environ if environment is None else environment
    try:
        profile = _Profile.model_validate(yaml.safe_load(file.read_text()))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{file} does not exist: run in the project's folder, or set --profile"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {first_problem(error)}") from error
    name = target or _fill(profile.target, env, f"{file}: target")
    if name not in profile.targets:
        raise ConfigurationError(
            f"{file}: no target {name!r}; there are: {', '.join(profile.targets)}"
        )
    chosen = profile.targets[name]
    where = f"{file}: targets.{name}"
    values = dict(env)
    if chosen.env_file is not None:
        path = file.resolve().parents[1] / _fill(chosen.env_file, env, f"{where}.env_file")
        values = _env_file(path) | values
    return Target(
        name,
        where,
        {"kafka": chosen.kafka, "registry": chosen.registry},
        chosen.databases,
        chosen.alerts,
        values,
    )


def _registry(settings: dict[str, str], where: str) -> Registry:
    tls = {key: value for key, value in settings.items() if key in _REGISTRY_TLS}
    rest = {key: value for key, value in settings.items() if key not in tls}
    if "tls" in rest:
        raise ConfigurationError(f"{where}: tls: unknown key")
    try:
        registry = Registry.model_validate({**rest, "tls": tls})
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {first_problem(error)}") from error
    if registry.is_glue:
        _check_glue(registry, where)
        return registry
    address = urlsplit(registry.url)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigurationError(f"{where}.url must start with http:// or https:// and have a host")
    if address.username or address.password:
        raise ConfigurationError(f"{where}.url contains a user: set username and password instead")
    if (registry.username is None) != (registry.password is None):
        pair = ("username", "password")
        present, absent = pair if registry.password is None else reversed(pair)
        raise ConfigurationError(f"{where}.{present} requires {where}.{absent}")
    if tls and address.scheme != "https":
        raise ConfigurationError(f"{where}.{min(tls)} has no effect with an http:// url")
    client_settings.check_tls(tls, where)
    return registry


def _check_glue(registry: Registry, where: str) -> None:
    if _GLUE.fullmatch(registry.url) is None:
        raise ConfigurationError(
            f"{where}.url {registry.url} is not the ARN of a Glue registry, such as "
            "arn:aws:glue:eu-west-1:123456789012:registry/events"
        )
    others = [*registry.tls, *(["username"] if registry.username is not None else [])]
    if others:
        raise ConfigurationError(
            f"{where}.{min(others)} has no effect with an ARN: remove it; requests are signed with "
            "the process' identity of AWS"
        )


def _fill(text: str, values: Mapping[str, str], key: str) -> str:
    """Replace references in a text, without recursion."""

    def value(match: re.Match[str]) -> str:
        path, _, _, name, default = match.groups()
        if path is not None:
            return _secret_file(_fill(path, values, key), key)
        found: str | None = values.get(name) or default
        if found is None:
            raise ConfigurationError(
                f"{key} requires ${{{name}}}, which is not set: "
                f"start the sandbox (`sandbox up`) or export {name}"
            )
        return found

    return _REFERENCE.sub(value, text)


def _secret_file(path: str, key: str) -> str:
    """The content of a file without trailing line breaks."""
    try:
        text = Path(path).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(f"{key}: cannot read {path} ({reason})") from error
    if not text.strip():
        raise ConfigurationError(f"{key}: {path} is empty")
    return text.rstrip("\r\n")


def _env_file(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pairs: dict[str, Any] = {}
    for line in path.read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            pairs[name.strip()] = value.strip()
    return pairs
