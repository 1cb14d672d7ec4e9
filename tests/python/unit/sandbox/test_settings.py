"""Which folder and which ports a sandbox has."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.settings import (
    DEFAULT_PORTS,
    PROJECT,
    Home,
    chosen_ports,
    load_home,
    save_settings,
    with_ports,
)
from spark_ingest.errors import ConfigurationError


def test_the_default_is_a_folder_of_the_checkout_on_the_default_ports() -> None:
    home = load_home({})

    assert home.path == PROJECT / ".sandbox"
    assert load_home({"SANDBOX_HOME": ""}).path == home.path


def test_an_offset_moves_every_port_and_is_remembered(tmp_path: Path) -> None:
    moved = load_home({"SANDBOX_HOME": str(tmp_path), "SANDBOX_PORT_OFFSET": "1000"})

    save_settings(moved)

    assert moved.ports == {name: port + 1000 for name, port in DEFAULT_PORTS.items()}
    assert load_home({"SANDBOX_HOME": str(tmp_path)}) == moved


def test_a_chosen_port_stays_whatever_the_offset(tmp_path: Path) -> None:
    home = with_ports(load_home({"SANDBOX_HOME": str(tmp_path)}), {"kafka": 29092})
    save_settings(home)

    read = load_home({"SANDBOX_HOME": str(tmp_path), "SANDBOX_PORT_OFFSET": "7"})

    assert read.ports["kafka"] == 29092
    assert read.ports["registry"] == DEFAULT_PORTS["registry"] + 7
    assert chosen_ports(read) == {"kafka": 29092}


def test_saving_the_same_settings_again_leaves_the_file_alone(tmp_path: Path) -> None:
    home = Home(tmp_path)
    save_settings(home)
    before = home.settings_file.stat().st_mtime_ns

    save_settings(home)

    assert home.settings_file.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[ports]\nkafak = 1\n", "kafak"),
        ("[ports]\nkafka = 80\n", "1024 to 65535"),
        ('[ports]\nkafka = "19092"\n', "whole number"),
        ("[ports]\nkafka = true\n", "whole number"),
        ("[ports]\nkafka = 20000\nregistry = 20000\n", "both 20000"),
        ("port = 5\n", "unknown key port"),
        ("ports = 5\n", "ports a table"),
        ("[ports\n", "fix or delete"),
    ],
)
def test_a_wrong_settings_file_is_named_with_what_is_wrong(
    tmp_path: Path, text: str, names: str
) -> None:
    (tmp_path / "settings.toml").write_text(text)

    with pytest.raises(ConfigurationError) as caught:
        load_home({"SANDBOX_HOME": str(tmp_path)})

    assert names in str(caught.value)
    assert str(tmp_path / "settings.toml") in str(caught.value)


@pytest.mark.parametrize(("offset", "names"), [("x", "whole number"), ("60000", "65535")])
def test_a_wrong_offset_is_refused(tmp_path: Path, offset: str, names: str) -> None:
    with pytest.raises(ConfigurationError, match=names):
        load_home({"SANDBOX_HOME": str(tmp_path), "SANDBOX_PORT_OFFSET": offset})


def test_programs_get_absolute_paths_and_addresses(tmp_path: Path) -> None:
    home = with_ports(Home(tmp_path), {"kafka": 29092, "registry": 28081})

    assert home.environment() == {
        "SANDBOX_HOME": str(tmp_path),
        "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:29092",
        "SCHEMA_REGISTRY_URL": "http://127.0.0.1:28081/apis/ccompat/v7",
        "SPARK_INGEST_TARGET": "sandbox",
        "REDSHIFT_STANDIN_PORT": "15439",
        "SPARK_THRIFT_PORT": "10000",
        "SANDBOX_POSTGRES_PORT": "15433",
        "SANDBOX_MARIADB_PORT": "13306",
        "SPARK_CONF_DIR": str(tmp_path / "spark-conf"),
    }
