"""Connections: what is read, what wins, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ingest.config import load_connections
from spark_ingest.errors import ConfigurationError

PROFILE = """
target: here
targets:
  here:
    env_file: ${HOME_FOLDER:-state}/env
    kafka:
      bootstrap.servers: ${SERVERS}
      security.protocol: SASL_PLAINTEXT
      sasl.mechanism: PLAIN
      sasl.username: me
      sasl.password: ${SECRET:-hunter2}
    registry:
      url: ${REGISTRY}
"""


def profile(folder: Path, text: str = PROFILE) -> Path:
    (folder / "profiles").mkdir()
    file = folder / "profiles" / "ingest.yml"
    file.write_text(text)
    return file


def test_the_environment_wins_over_the_env_file(tmp_path: Path) -> None:
    file = profile(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "env").write_text("SERVERS=file:1\nREGISTRY=http://file\n")
    found = load_connections(file, None, {"SERVERS": "environment:1"})
    assert found.bootstrap_servers == "environment:1"
    assert found.registry.url == "http://file"
    assert found.kafka["security.protocol"] == "SASL_PLAINTEXT"


def test_a_secret_is_not_in_the_representation(tmp_path: Path) -> None:
    found = load_connections(
        profile(tmp_path), None, {"SERVERS": "a:1", "REGISTRY": "http://r"}
    )
    assert found.kafka["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(found)


def test_a_missing_variable_names_key_and_fix(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"targets.here.kafka.bootstrap.servers.*SERVERS"
    ):
        load_connections(profile(tmp_path), None, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("target: here\ntargets: {}\n", "no target 'here'"),
        ("target: [\n", "not YAML"),
        (
            "target: a\ntargets:\n  a:\n    kafka: {}\n    registry: {}\n",
            "no bootstrap.servers",
        ),
        (
            "target: a\ntargets:\n  a:\n    kafka: {}\n    regis: {}\n",
            "targets.a.regis",
        ),
        (
            "target: a\ntargets:\n  a:\n    kafka: {bootstrap.servers: x}\n    registry: {u: y}\n",
            "registry: url",
        ),
    ],
)
def test_a_malformed_profile_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load_connections(profile(tmp_path, text), None, {})


def test_a_missing_profile_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_connections(tmp_path / "profiles" / "ingest.yml", None, {})
