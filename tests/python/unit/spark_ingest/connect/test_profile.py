"""Connections: what is read, what wins, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ingest.connect.profile import load_connections
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
    found = load_connections(profile(tmp_path), None, {"SERVERS": "a:1", "REGISTRY": "http://r"})
    assert found.kafka["sasl.password"] == "hunter2"
    assert "hunter2" not in repr(found)


def test_a_missing_variable_names_key_and_fix(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"targets.here.kafka.bootstrap.servers.*SERVERS"):
        load_connections(profile(tmp_path), None, {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("target: here\ntargets: {}\n", "no target 'here'"),
        ("target: [\n", "not YAML"),
        ("target: a\ntargets:\n  a:\n    kafka: {}\n    registry: {}\n", "no bootstrap.servers"),
        ("target: a\ntargets:\n  a:\n    kafka: {}\n    regis: {}\n", "targets.a.regis"),
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


SECURE = """
target: ${CHOSEN:-secure}
targets:
  secure:
    kafka:
      bootstrap.servers: a:1
      security.protocol: SASL_PLAINTEXT
      sasl.mechanism: PLAIN
      sasl.username: ${USER_OF_KAFKA:-me}
      sasl.password: ${file:${FOLDER}/secret}
      client.id: ${NAME:-}
    registry:
      url: ${URL:-http://r}
      username: me
      password: ${file:${FOLDER}/secret}
"""


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    # What a file says is taken as it is: no reference in it leads anywhere.
    (tmp_path / "secret").write_text("a ${FOLDER} word\n")
    found = load_connections(
        profile(tmp_path, SECURE), None, {"FOLDER": str(tmp_path), "CHOSEN": ""}
    )
    assert found.kafka["sasl.password"] == "a ${FOLDER} word"
    assert found.registry.password == "a ${FOLDER} word"
    assert "word" not in repr(found) + repr(found.registry)
    # A line that comes out empty is as if it were not there.
    assert "client.id" not in found.kafka


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot read .*/secret"), ("\n", "is empty"), (b"\xff\xfe", "not text")],
)
def test_a_file_without_a_secret_is_named(
    tmp_path: Path, content: str | bytes | None, said: str
) -> None:
    if content is not None:
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "secret").write_bytes(raw)
    with pytest.raises(ConfigurationError, match=rf"targets.secure.kafka.sasl.password: .*{said}"):
        load_connections(profile(tmp_path, SECURE), None, {"FOLDER": str(tmp_path)})


@pytest.mark.parametrize(
    ("registry", "said"),
    [
        ("{url: ftp://r}", "must start with http"),
        ("{url: 'http://me:hunter2@r'}", "contains a user"),
        ("{url: http://r, username: me}", "username requires .*password"),
        ("{url: http://r, ssl.ca.location: x}", "no effect with an http"),
        ("{url: https://r, ssl.ca.location: /nowhere}", "cannot read /nowhere"),
        ("{url: https://r, tls: x}", "unknown key"),
        ("{url: 'arn:aws:glue:eu-west-1:1:registry/r'}", "not the ARN of a Glue registry"),
        (
            "{url: 'arn:aws:glue:eu-west-1:123456789012:registry/r', username: a, password: b}",
            "username has no effect with an ARN",
        ),
    ],
)
def test_a_registry_that_cannot_be_asked_is_named(tmp_path: Path, registry: str, said: str) -> None:
    text = (
        "target: a\ntargets:\n  a:\n    kafka: {bootstrap.servers: a:1}\n"
        f"    registry: {registry}\n"
    )
    with pytest.raises(ConfigurationError, match=said) as caught:
        load_connections(profile(tmp_path, text), None, {})
    assert "hunter2" not in str(caught.value)
