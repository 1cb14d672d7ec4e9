"""What is committed in real databases arrives in topics, in the form that is promised.

Fails when a committed change does not reach its topic in the promised form, once, or a password
shows.
"""

from __future__ import annotations

import io
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import fastavro
import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient

from sandbox.processes.process import MARK, read_record
from sandbox.services import mariadb, postgres
from sandbox.services import stack as services
from sandbox.services.connect import declared, rest, wait_until_passed
from sandbox.services.connect.position import database_of
from sandbox.services.kafka import admin, end_offsets
from sandbox.services.stack import SERVICES
from sandbox.settings import Home
from spark_ingest.errors import MillraceError
from tests.python.conftest import Stack, own_stack

pytestmark = pytest.mark.nightly

# Elsewhere the rest is captured all the same.
DATABASES = [name for name in ("postgres", "mariadb") if SERVICES[name].lacks_platform() is None]
STARTED = ("kafka", "registry", *DATABASES, "connect")
CONNECTORS = [name for name, config in declared().items() if database_of(config) in DATABASES]


@dataclass(frozen=True)
class Record:
    """A record of a topic, decoded with the schemas that wrote it."""

    key: dict[str, Any] | None
    value: dict[str, Any] | None
    partition: int


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Databases and Connect for these tests alone, in a path with a blank."""
    with own_stack(tmp_path_factory.mktemp("capture") / "sand box", "cdc") as found:
        yield found


def in_postgres(home: Home, database: str, *statements: str) -> None:
    """Run statements, each committed by itself."""
    with closing(postgres.connect(home, database)) as connection:
        connection.autocommit = True
        for statement in statements:
            connection.cursor().execute(statement)


def in_mariadb(home: Home, *statements: str) -> None:
    with closing(mariadb.connect(home)) as connection:
        connection.autocommit(True)
        for statement in statements:
            connection.cursor().execute(statement)


def decoded(registry: SchemaRegistryClient, framed: bytes | None) -> Any:
    if framed is None:
        return None
    assert framed[0] == 0, "the framing is not Confluent's"
    text = registry.get_schema(int.from_bytes(framed[1:5], "big")).schema_str
    schema = fastavro.parse_schema(json.loads(text or ""))
    return fastavro.schemaless_reader(io.BytesIO(framed[5:]), schema, None)


def records(home: Home, topic: str) -> list[Record]:
    """All records of a topic, in the order of each partition."""
    registry = SchemaRegistryClient({"url": home.registry_url})
    client = Consumer({"bootstrap.servers": home.bootstrap_servers, "group.id": "t"})
    found = []
    try:
        for partition, end in end_offsets(home, topic).items():
            client.assign([TopicPartition(topic, partition, 0)])
            for _ in range(end):
                message = client.poll(30)
                assert message is not None
                key = decoded(registry, message.key())
                value = decoded(registry, message.value())
                found.append(Record(key, value, partition))
    finally:
        client.close()
    return found


def of_key(found: list[Record], **key: Any) -> list[dict[str, Any] | None]:
    return [record.value for record in found if record.key == key]


def operations(values: list[dict[str, Any] | None], name: str) -> list[str | None]:
    return [value[name] if value else None for value in values]


def test_status_shows_connectors_and_a_second_up_changes_nothing(capture: Stack) -> None:
    before = {name: read_record(SERVICES[name].folder(capture.home)) for name in STARTED}

    again = capture.run("sandbox", "up", "cdc")
    status = capture.run("sandbox", "status")

    after = {name: read_record(SERVICES[name].folder(capture.home)) for name in STARTED}
    assert before == after
    assert "made" not in again.stderr
    for name in CONNECTORS:
        assert f"running  {name}: " in status.stdout


def test_a_flattened_topic_has_each_change_and_its_tombstones(capture: Stack) -> None:
    home = capture.home
    in_postgres(
        home,
        "moma",
        "create table flat (id int primary key, name text, size int default 5)",
        "alter table flat replica identity full",
        "insert into flat values (1, 'a', null)",
        "update flat set name = 'b' where id = 1",
        "update flat set id = 2 where id = 1",
        "delete from flat where id = 2",
    )
    wait_until_passed(home, "moma")

    found = records(home, "moma.public.flat")
    old, new = of_key(found, id=1), of_key(found, id=2)

    assert operations(old, "__op") == ["c", "u", "d", None]
    assert operations(new, "__op") == ["c", "d", None]
    created, deleted = old[0], new[1]
    assert created is not None
    assert deleted is not None
    # A null of a column with a default is a null.
    assert (created["name"], created["size"], created["__deleted"]) == ("a", None, "false")
    assert (deleted["name"], deleted["__deleted"]) == ("b", "true")
    assert created["__source_txId"] < deleted["__source_txId"]
    assert created["__lsn"] < deleted["__lsn"]
    assert created["__source_sequence"].endswith(f'"{created["__lsn"]}"]')
    assert (created["__db"], created["__schema"], created["__table"]) == ("moma", "public", "flat")
    assert abs(created["__source_ts_ms"] / 1000 - time.time()) < 600


def test_an_envelope_topic_has_both_sides_and_the_truncate(capture: Stack) -> None:
    home = capture.home
    in_postgres(
        home,
        "pagila",
        "create table whole (id int primary key, long text, mood text default 'x')",
        "alter table whole alter column long set storage external",
        "insert into whole values (1, repeat('long', 1000), null)",
        "update whole set mood = 'good' where id = 1",
        "truncate whole",
    )
    wait_until_passed(home, "pagila")

    found = records(home, "pagila.public.whole")
    created, updated = of_key(found, id=1)
    (truncated,) = [record.value for record in found if record.key is None]

    assert created is not None
    assert updated is not None
    assert truncated is not None
    assert (created["op"], updated["op"], truncated["op"]) == ("c", "u", "t")
    assert created["after"] == {"id": 1, "long": "long" * 1000, "mood": None}
    # With the replica identity that tables have: no old row, and no value that stayed out of it.
    assert updated["before"] is None
    assert updated["after"]["long"] == "__debezium_unavailable_value"
    assert truncated["before"] is truncated["after"] is None
    positions = [each["source"]["lsn"] for each in (created, updated, truncated)]
    assert positions == sorted(set(positions))


@pytest.mark.skipif("mariadb" not in DATABASES, reason="no MariaDB for this machine")
def test_a_topic_of_mariadb_has_positions_and_no_tombstone(capture: Stack) -> None:
    home = capture.home
    in_mariadb(
        home,
        "create table flat (id int primary key, name varchar(9), size int default 5)",
        "insert into flat values (1, 'a', null), (3, 'c', 7)",
        "update flat set name = 'b' where id = 1",
        "update flat set id = 2 where id = 1",
        "delete from flat where id = 2",
    )
    wait_until_passed(home, "tickit-ecomm")

    found = records(home, "tickit.ecomm.flat")
    old, new, other = of_key(found, id=1), of_key(found, id=2), of_key(found, id=3)

    assert operations(old, "__op") == ["c", "u", "d"]
    assert operations(new, "__op") == ["c", "d"]
    created, also = old[0], other[0]
    assert created is not None
    assert also is not None
    assert (created["name"], created["size"], also["size"]) == ("a", None, 7)
    positions = [(value["__source_file"], value["__source_pos"]) for value in old if value]
    assert positions == sorted(set(positions))
    # Rows of one event share its position.
    assert (created["__source_pos"], created["__source_row"]) == (*positions[0][1:], 0)
    assert (also["__source_pos"], also["__source_row"]) == (*positions[0][1:], 1)
    assert created["__source_gtid"] == also["__source_gtid"]


def test_topics_have_two_partitions_and_keep_all(capture: Stack) -> None:
    from confluent_kafka.admin import ConfigResource

    in_postgres(
        capture.home,
        "moma",
        "create table kept (id int primary key)",
        "insert into kept select generate_series(1, 20)",
    )
    wait_until_passed(capture.home, "moma")

    broker = admin(capture.home)
    asked = ConfigResource("topic", "moma.public.kept")
    (answer,) = broker.describe_configs([asked]).values()

    assert answer.result()["retention.ms"].value == "-1"
    assert {each.partition for each in records(capture.home, "moma.public.kept")} == {0, 1}


def test_a_table_that_grows_a_column_goes_on(capture: Stack) -> None:
    home = capture.home
    in_postgres(
        home,
        "moma",
        "create table grows (id int primary key, size smallint)",
        "insert into grows values (1, 1)",
        "alter table grows add column note text, alter column size type int",
        "insert into grows values (2, 100000, 'n')",
        "alter table grows drop column note",
        "insert into grows values (3, 3)",
    )
    wait_until_passed(home, "moma")

    found = records(home, "moma.public.grows")
    first, second, third = (of_key(found, id=number)[0] for number in (1, 2, 3))

    assert first is not None
    assert second is not None
    assert third is not None
    assert "note" not in first
    assert (second["size"], second["note"]) == (100_000, "n")
    assert "note" not in third


def test_no_change_is_lost_or_made_up_when_connect_is_killed(capture: Stack) -> None:
    home = capture.home
    in_postgres(
        home,
        "moma",
        "create table counted (id int primary key)",
        "insert into counted select generate_series(1, 300)",
    )
    record = read_record(SERVICES["connect"].folder(home))
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    in_postgres(home, "moma", "insert into counted select generate_series(301, 400)")

    capture.run("sandbox", "up", "cdc")
    in_postgres(home, "moma", "insert into counted select generate_series(401, 500)")
    wait_until_passed(home, "moma")

    values = [each.value for each in records(home, "moma.public.counted") if each.value]
    # Sent twice it may be, each time with the position that it has in the database's log.
    changes = {(value["id"], value["__lsn"]) for value in values}
    assert sorted(number for number, _ in changes) == list(range(1, 501))
    assert {value["__op"] for value in values} == {"c"}


def test_a_column_that_the_registry_refuses_is_reported_and_mended(capture: Stack) -> None:
    home = capture.home
    in_postgres(
        home,
        "moma",
        "create table strict (id int primary key)",
        "insert into strict values (1)",
        "alter table strict add column rank int not null default 0",
        "alter table strict alter column rank drop default",
        "insert into strict values (2, 7)",
    )

    with pytest.raises(MillraceError, match="connector moma has failed") as failure:
        wait_until_passed(home, "moma")
    status = capture.run("sandbox", "status", check=False)
    in_vain = capture.run("sandbox", "up", "cdc", check=False)

    assert "moma.public.strict-value" in str(failure.value)
    assert status.returncode == in_vain.returncode == 1
    reported = [line for line in status.stdout.splitlines() if line.startswith("failed")]
    assert len(reported) == 1
    assert "rank" in reported[0]
    assert "docs/runbooks/connector.md" in reported[0]
    assert "failed   moma: " in in_vain.stdout

    # What the runbook says.
    in_postgres(home, "moma", "alter table strict alter column rank set default 0")
    capture.run("sandbox", "up", "cdc")
    wait_until_passed(home, "moma")

    (landed,) = of_key(records(home, "moma.public.strict"), id=2)
    assert landed is not None
    assert landed["rank"] == 7


def test_no_secret_is_shown(capture: Stack) -> None:
    home = capture.home
    files = list(home.services.glob("*/*.password"))
    secrets = {file.read_text() for file in files}
    pids = [read_record(SERVICES[name].folder(home)) for name in STARTED]

    assert {file.name.partition(".")[0] for file in files} == {
        "admin",
        "app",
        "debezium",
        "reconcile",
    }
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    shown = [log.read_text(errors="replace") for log in home.logs.glob("*.log")]
    shown += [json.dumps(rest.connectors(home))]
    shown += [" ".join(psutil.Process(each.pid).cmdline()) for each in pids if each]
    assert [text for text in shown if any(secret in text for secret in secrets)] == []


def test_servers_listen_on_the_loopback_only(capture: Stack) -> None:
    listening = set()
    for name in STARTED:
        record = read_record(SERVICES[name].folder(capture.home))
        assert record is not None
        process = psutil.Process(record.pid)
        for each in (process, *process.children(recursive=True)):
            for connection in each.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    listening.add(connection.laddr.ip.removeprefix("::ffff:"))

    assert listening == {"127.0.0.1"}


# The last one: it ends what the others use.
def test_down_leaves_nothing_running_and_up_goes_on(capture: Stack) -> None:
    home = capture.home
    capture.run("sandbox", "down")
    left = [
        process.pid
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get(MARK, "").endswith(f" {home.path}")
    ]

    assert left == []
    assert not (home.services / "postgres" / "programs").exists()
    # What was committed is there again.
    services.up(home, DATABASES)
    with closing(postgres.connect(home, "moma")) as connection:
        cursor = connection.cursor()
        cursor.execute("select count(*) from counted")
        assert cursor.fetchone() == (500,)
