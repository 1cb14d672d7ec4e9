"""The doctor names what does not hold and how to mend it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sandbox import doctor
from sandbox.doctor import Finding
from sandbox.install import parts, spark_conf
from sandbox.settings import Home, load_home, save_settings, with_ports


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SANDBOX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("SANDBOX_PORT_OFFSET", "SPARK_CONF_DIR", "SPARK_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return load_home()


def findings() -> dict[str, Finding]:
    return {finding.name: finding for finding in doctor.examine()}


def test_parts_that_were_never_fetched_fail_with_the_command(home: Home) -> None:
    found = findings()

    for component in parts.components():
        assert not found[f"part {component}"].good
        assert f"`sandbox parts {component}`" in found[f"part {component}"].text


def test_a_stopped_service_with_free_ports_is_no_failure(home: Home) -> None:
    assert home.ports  # the defaults may be taken on this machine: choose others
    save_settings(with_ports(home, dict(zip(home.ports, _free(len(home.ports)), strict=True))))

    found = findings()

    assert found["kafka"].good
    assert found["registry"].good
    assert "topics" not in found


def test_a_taken_port_fails_with_its_holder(home: Home) -> None:
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", 0))
        squatter.listen()
        port = int(squatter.getsockname()[1])
        save_settings(with_ports(home, {"registry": port}))

        found = findings()["registry"]

    assert not found.good
    assert f"port {port} is taken by pid" in found.text
    assert "sandbox up --port registry=" in found.text


def test_a_spark_conf_dir_of_another_sandbox_fails(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Home(tmp_path / "other")
    spark_conf.render(other, other.spark_conf)
    monkeypatch.setenv("SPARK_CONF_DIR", str(other.spark_conf))

    foreign = findings()["lake"]
    spark_conf.render(home, home.spark_conf)
    monkeypatch.setenv("SPARK_CONF_DIR", str(home.spark_conf))
    own = findings()["lake"]

    assert not foreign.good
    assert "unset SPARK_CONF_DIR" in foreign.text
    assert own.good


def test_an_environment_rendered_for_another_sandbox_fails_with_both_named(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "venv conf"
    monkeypatch.setattr(spark_conf, "environment_conf", lambda: conf)

    nothing = findings()["lake"]
    spark_conf.render(Home(tmp_path / "other"), conf)
    other = findings()["lake"]

    assert "`make install`" in nothing.text
    assert str(tmp_path / "other") in other.text
    assert str(home.path) in other.text
    assert not nothing.good
    assert not other.good


def test_no_java_and_a_foreign_spark_home_fail_without_ending_the_examination(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    found = findings()

    assert "no java on PATH" in found["Java"].text
    assert "unset SPARK_HOME" in found["Spark"].text
    assert found["Python"].good


def test_a_full_disk_fails(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_MIN_FREE_MB", "999999999")

    assert "free some space" in findings()["disk, data"].text


def test_wrong_settings_end_the_examination_with_the_file(home: Home) -> None:
    home.path.mkdir()
    home.settings_file.write_text("nonsense")

    *_, last = doctor.examine()

    assert not last.good
    assert str(home.settings_file) in last.text


def _free(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
