"""What real databases do to the order of their changes: logs rolled back, restored, open beside
a snapshot.

Fails when a database's log that is rolled back or restored is not noticed, or its changes are
misordered.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sandbox.services import mariadb, postgres
from sandbox.services import stack as services
from sandbox.services.connect import rest, wait_until_passed
from sandbox.services.stack import SERVICES
from sandbox.settings import Home
from tests.python.conftest import Stack, own_stack

pytestmark = pytest.mark.long

NO_TESTS = ["--exclude-resource-type", "test", "unit_test"]
ARTIST = "insert into artists (artist_id, name) values (%s, %s)"
DAY = (
    "insert into date (dateid, caldate, day, week, month, qtr, year)"
    " values (%s, '2026-01-01', %s, 1, 'JAN', '1', 2026)"
)
LACKS_MARIADB = SERVICES["mariadb"].lacks_platform()


@pytest.fixture
def captured(tmp_path: Path) -> Iterator[Stack]:
    """Databases, Connect and a lake for one test."""
    with own_stack(tmp_path / "sandbox", "cdc") as found:
        yield found


class Followed:
    """A captured table, from its database to its models.

    Args:
        stack: The services.
        database: As the profile and ``log_restarts`` name it.
        connector: Which.
        stream: The source's table: ``moma.artists``.
        models: What the names of its models begin with.
        connect: Opens a connection to its database.
    """

    def __init__(
        self,
        stack: Stack,
        database: str,
        connector: str,
        stream: str,
        models: str,
        connect: Callable[[Home], Any],
    ) -> None:
        self.stack, self.home = stack, stack.home
        self.connector, self.stream, self.models = connector, stream, models
        self.database, self.connect = database, connect

    def write(self, statement: str, *values: object) -> None:
        with closing(self.connect(self.home)) as connection:
            connection.cursor().execute(statement, values)
            connection.commit()

    def ingest(self) -> None:
        wait_until_passed(self.home, self.connector)
        self.stack.run("spark-ingest", "run", self.stream, "--once")

    def build(self, *words: str, check: bool = True) -> str:
        said = self.stack.run(
            *("dbt", "build", "--select", f"+{self.models}_current", *NO_TESTS),
            *("--target-path", str(self.home.path / "target"), *words),
            check=check,
        )
        assert check or said.returncode == 1
        return said.stdout

    def held(self, columns: str) -> list[list[Any]]:
        said = self.stack.run(
            *("sandbox", "sql", "--format", "json"),
            f"select {columns} from intermediate.{self.models}_current order by 1",
        )
        return [list(row.values()) for row in json.loads(said.stdout)]

    def stop(self) -> None:
        rest.request(self.home, "PUT", f"/connectors/{self.connector}/stop")

    def read_anew(self) -> datetime:
        """The connector's first snapshot again; gives the instant before it."""
        rest.request(self.home, "DELETE", f"/connectors/{self.connector}/offsets")
        began_at = datetime.now(UTC)
        rest.request(self.home, "PUT", f"/connectors/{self.connector}/resume")
        return began_at


def artists_of(stack: Stack) -> Followed:
    """The museum's artists, in PostgreSQL."""
    return Followed(
        stack,
        "moma",
        "moma",
        "moma.artists",
        "int_moma__artists",
        lambda home: postgres.connect(home, "moma"),
    )


def assert_it_is_reported(table: Followed, began_at: datetime) -> str:
    """The build stops until it knows when the log began; returns the variable that says so."""
    said = table.build(check=False)
    assert f"the log of the database {table.database} restarted by" in said
    reported = f'{{log_restarts: {{{table.database}: ["{began_at:%Y-%m-%dT%H:%M:%S.%fZ}"]}}}}'
    table.build("--full-refresh", "--vars", reported)
    return reported


@pytest.mark.skipif(LACKS_MARIADB is not None, reason=str(LACKS_MARIADB))
def test_a_binary_log_that_is_reset_is_reported_and_goes_on(captured: Stack) -> None:
    table = Followed(
        captured, "ecomm", "tickit-ecomm", "tickit.date", "int_tickit__date", mariadb.connect
    )
    table.write(DAY, 1, "MO")
    table.write(DAY, 2, "TU")
    for day in ("WE", "TH", "FR"):
        table.write("update date set day = %s where dateid = 1", day)
    table.ingest()
    table.build()

    table.stop()
    with closing(mariadb.connect(table.home, None, mariadb.ADMIN)) as connection:
        connection.cursor().execute("reset master")
    began_at = table.read_anew()
    wait_until_passed(table.home, table.connector)
    table.write("update date set day = 'SA' where dateid = 1")
    table.ingest()
    reported = assert_it_is_reported(table, began_at)
    table.write("update date set day = 'SU' where dateid = 2")
    table.ingest()
    table.build("--vars", reported)

    assert table.held("date_id, day_code") == [[1, "SA"], [2, "SU"]]


def test_a_restored_postgresql_is_reported_and_goes_on(captured: Stack) -> None:
    home = captured.home
    table = artists_of(captured)
    table.write(ARTIST, 1, "before the backup")
    table.write(ARTIST, 2, "kept")
    table.ingest()
    table.stop()
    services.down(home, ["connect", "postgres"])
    data, backup = home.services / "postgres", home.path / "backup"
    shutil.copytree(data, backup, symlinks=True)
    services.up(home, ["cdc"])
    rest.request(home, "PUT", f"/connectors/{table.connector}/resume")
    for number in range(50):
        table.write(f"update artists set name = 'lost {number}' where artist_id = 1")
    table.ingest()
    table.build()
    assert table.held("artist_id, artist_name") == [[1, "lost 49"], [2, "kept"]]

    table.stop()
    services.down(home, ["connect", "postgres"])
    shutil.rmtree(data)
    backup.rename(data)
    services.up(home, ["cdc"])
    with closing(postgres.connect(home, "moma", postgres.DEBEZIUM)) as connection:
        connection.cursor().execute("select pg_drop_replication_slot('moma')")
        connection.commit()
    began_at = table.read_anew()
    wait_until_passed(home, table.connector)
    table.write("update artists set name = 'after it' where artist_id = 1")
    table.ingest()
    reported = assert_it_is_reported(table, began_at)
    table.write("update artists set name = 'and on' where artist_id = 1")
    table.ingest()
    table.build("--vars", reported)

    assert table.held("artist_id, artist_name") == [[1, "and on"], [2, "kept"]]


def test_a_transaction_that_is_open_while_a_snapshot_is_taken_counts_when_it_ends(
    captured: Stack,
) -> None:
    home = captured.home
    table = artists_of(captured)
    table.write(ARTIST, 1, "first")
    table.write(ARTIST, 2, "first")
    table.ingest()
    table.build()

    with closing(postgres.connect(home, "moma")) as opened:
        opened.cursor().execute("update artists set name = 'open' where artist_id = 1")
        table.stop()
        table.read_anew()
        table.write("update artists set name = 'beside' where artist_id = 2")
        wait_until_passed(home, table.connector)
        table.ingest()
        table.build()
        before = table.held("artist_id, artist_name")
        opened.commit()
    table.ingest()
    table.build()

    assert before == [[1, "first"], [2, "beside"]]
    assert table.held("artist_id, artist_name") == [[1, "open"], [2, "beside"]]
    # A full refresh reads the snapshot and the change together.
    table.build("--full-refresh")
    assert table.held("artist_id, artist_name") == [[1, "open"], [2, "beside"]]
