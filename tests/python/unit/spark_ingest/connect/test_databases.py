"""Databases of the profile: what is read, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_ingest.connect import databases
from spark_ingest.connect.databases import Database, check_driver, database_of
from spark_ingest.connect.profile import load_connections, read_target
from spark_ingest.connect.row_counts import binlog_position
from spark_ingest.errors import ConfigurationError

PROFILE = """
target: here
targets:
  here:
    kafka: {{bootstrap.servers: "a:1"}}
    registry: {{url: "http://r"}}
    databases:
      shop:
        url: {url}
        password: ${{SHOP_PASSWORD}}
"""
SECRETS = {"SHOP_PASSWORD": "hunter2"}


def found(folder: Path, url: str, environment: dict[str, str] | None = None) -> Database | None:
    file = folder / "ingest.yml"
    file.write_text(PROFILE.format(url=url))
    target = read_target(file, None, SECRETS if environment is None else environment)
    return database_of(target, "shop")


def test_an_address_is_read_and_its_secret_does_not_show(tmp_path: Path) -> None:
    shop = found(tmp_path, "postgresql://counts@db.example/orders?sslmode=verify-full")

    assert shop == Database(
        "postgresql",
        "db.example",
        5432,
        "orders",
        "counts",
        "hunter2",
        (("sslmode", "verify-full"),),
    )
    assert "hunter2" not in repr(shop)
    assert shop is not None
    assert shop.address == "postgresql://db.example:5432/orders"


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("postgresql://me:hunter2@db/orders", "contains a password"),
        ("mysql://me@db/orders", "begins with 'mysql'.*mariadb://"),
        ("mariadb://me@db", "no host or no database"),
        ("postgresql://me@db:x/orders", "is not a URL"),
        ("postgresql://me@db/orders?ssl_ca=x", "unknown option ssl_ca.*sslmode"),
    ],
)
def test_an_address_that_cannot_be_used_names_the_key_and_no_secret(
    tmp_path: Path, url: str, names: str
) -> None:
    with pytest.raises(ConfigurationError, match=names) as error:
        found(tmp_path, url)
    assert "targets.here.databases.shop.url" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_an_address_that_is_left_empty_is_none(tmp_path: Path) -> None:
    assert found(tmp_path, "${SHOP_URL:-}") is None


def test_what_a_database_lacks_holds_up_no_stream(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"shop.password requires \$\{SHOP"):
        found(tmp_path, "mariadb://me@db/orders", {})

    connections = load_connections(tmp_path / "ingest.yml", None, {})

    assert connections.bootstrap_servers == "a:1"


def test_a_driver_that_is_missing_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = found(tmp_path, "mariadb://me@db/orders")
    assert shop is not None
    monkeypatch.setattr(databases, "_DRIVERS", {"mariadb": "no_such_driver"})

    with pytest.raises(ConfigurationError, match=r"no_such_driver.*millrace\[reconc"):
        check_driver(shop)


def test_places_of_a_binary_log_compare_as_it_runs() -> None:
    places = [("binlog.000009", 900), ("binlog.000010", 4), ("binlog.1000000", 4)]
    texts = [binlog_position(file, place) for file, place in places]
    assert texts[0] == "0000000009-00000000000000000900-00000000000"
    assert texts == sorted(texts)
