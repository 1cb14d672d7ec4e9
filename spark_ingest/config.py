"""Where Kafka and the schema registry are: ``profiles/ingest.yml``, validated when loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from spark_ingest.errors import ConfigurationError

# ${NAME} or ${NAME:-default}
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Registry(_Strict):
    """A schema registry with the Confluent API."""

    url: str


class Connections(_Strict):
    """The services of one target.

    Attributes:
        name: The target's name.
        kafka: Kafka client properties by their Kafka names; values may be secret and
            therefore do not appear in the representation.
        registry: The schema registry.
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


class _Profile(_Strict):
    target: str
    targets: dict[str, _Target]


def load_connections(
    file: Path, target: str | None, environment: Mapping[str, str] | None = None
) -> Connections:
    """Read one target of the profile, with its variables filled in.

    Args:
        file: The profile, usually ``profiles/ingest.yml``.
        target: The target's name; the profile's own default when None.
        environment: Variables; the process environment when None. They win over the
            target's ``env_file``, whose path is relative to the folder above the profile's.

    Raises:
        ConfigurationError: The file is missing or malformed, the target is unknown, a key
            is missing, or a variable has no value.
    """
    env = os.environ if environment is None else environment
    try:
        profile = _Profile.model_validate(yaml.safe_load(file.read_text()))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{file} does not exist: run in the project's folder, or name it with --profile"
        ) from error
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"{file} is not YAML: {' '.join(str(error).split())}"
        ) from error
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {first_problem(error)}") from error
    name = target or profile.target
    if name not in profile.targets:
        raise ConfigurationError(
            f"{file}: no target {name!r}; there are: {', '.join(profile.targets)}"
        )
    chosen = profile.targets[name]
    where = f"{file}: targets.{name}"
    values = dict(env)
    if chosen.env_file is not None:
        path = file.resolve().parents[1] / _fill(
            chosen.env_file, env, f"{where}.env_file"
        )
        values = _env_file(path) | values
    filled = {
        section: {
            key: _fill(text, values, f"{where}.{section}.{key}")
            for key, text in keys.items()
        }
        for section, keys in (("kafka", chosen.kafka), ("registry", chosen.registry))
    }
    if "bootstrap.servers" not in filled["kafka"]:
        raise ConfigurationError(f"{where}.kafka has no bootstrap.servers")
    try:
        return Connections(
            name=name,
            kafka=filled["kafka"],
            registry=Registry.model_validate(filled["registry"]),
        )
    except ValidationError as error:
        raise ConfigurationError(f"{where}.registry: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """The first thing that a validation found, as one line: key, then what is wrong."""
    problem = error.errors(include_input=False, include_url=False)[0]
    key = ".".join(str(part) for part in problem["loc"])
    return f"{key}: {problem['msg']}"


def _fill(text: str, values: Mapping[str, str], key: str) -> str:
    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        found: str | None = values.get(name) or default
        if found is None:
            raise ConfigurationError(
                f"{key} needs ${{{name}}}, which is not set: "
                f"start the sandbox (`sandbox up`) or export {name}"
            )
        return found

    return _VARIABLE.sub(value, text)


def _env_file(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pairs: dict[str, Any] = {}
    for line in path.read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            pairs[name.strip()] = value.strip()
    return pairs
