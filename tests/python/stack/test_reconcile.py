"""Rows counted in real databases while others write: each count is that of its place in the log.

What the log itself has up to that place is read by other means than the count's: PostgreSQL's
from a replication slot, MariaDB's from its binary log.

Fails when a row count is not that of its position in the database's log, or blocks other
writers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
import pymysql
import pytest

from sandbox.services import mariadb, postgres
from sandbox.services import stack as services
from sandbox.services.stack import SERVICES
from sandbox.settings import PROJECT, Home
from spark_ingest.connect.databases import Database, DatabaseError, database_of
from spark_ingest.connect.profile import read_target
from spark_ingest.connect.row_counts import Counted, Patience, count_rows
from spark_ingest.errors import MillraceError
from tests.python.conftest import make_home

pytestmark = pytest.mark.nightly

WRITERS = 4
COUNTS = 25
PATIENCE = Patience(lock_seconds=2.0, total_seconds=60.0)
needs_mariadb = pytest.mark.skipif(
    SERVICES["mariadb"].lacks_platform() is not None, reason="no MariaDB for this machine"
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Databases alone: nobody needs to capture what is counted."""
    found = make_home(tmp_path_factory.mktemp("reconcile"))
    try:
        services.up(found, ["postgres", "mariadb"])
        yield found
    finally:
        services.down(found)


def database(home: Home, name: str) -> Database:
    """As ``spark-ingest`` finds it, by the project's own profile."""
    file = PROJECT / "profiles" / "ingest.yml"
    found = database_of(read_target(file, "sandbox", home.environment()), name)
    assert found is not None
    return found


@contextmanager
def writing(open_connection: Callable[[], Any], begin: str) -> Iterator[None]:
    """Random transactions of several writers: rows come, go, and some are rolled back.

    Each statement changes one row. A transaction may stay open for a while; one in fifty empties
    the table.
    """
    stopping = threading.Event()
    failures: list[Exception] = []

    def write(number: int) -> None:
        random = Random(number)
        with closing(open_connection()) as connection:
            cursor = connection.cursor()
            while not stopping.is_set():
                cursor.execute(begin)
                if random.random() < 0.02:
                    # MariaDB gives up at once where InnoDB has a lock on a row yet.
                    with suppress(pymysql.err.OperationalError):
                        cursor.execute("truncate table counted")
                for _ in range(random.randrange(1, 6)):
                    # Rows of its own: no writer waits for another one.
                    key = number + WRITERS * random.randrange(60)
                    cursor.execute("delete from counted where id = %s", (key,))
                    if random.random() < 0.7:
                        cursor.execute("insert into counted values (%s)", (key,))
                    if random.random() < 0.1:
                        time.sleep(random.random() / 50)
                cursor.execute("rollback" if random.random() < 0.2 else "commit")

    def guarded(number: int) -> None:
        try:
            write(number)
        except (psycopg2.Error, pymysql.MySQLError) as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    assert failures == []


def counted_often(where: Database, table: str) -> list[Counted]:
    found = []
    for _ in range(COUNTS):
        found.append(count_rows(where, table, PATIENCE))
        time.sleep(0.02)
    return found


def test_a_count_in_postgresql_is_that_of_its_place_in_the_log(home: Home) -> None:
    def connected() -> Any:
        connection = postgres.connect(home, "moma")
        connection.autocommit = True
        # What commits is not in the log's file yet.
        connection.cursor().execute("set synchronous_commit = off")
        return connection

    with closing(connected()) as connection:
        connection.cursor().execute("create table counted (id int primary key)")
    with closing(postgres.connect(home, "moma", postgres.ADMIN)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        cursor.execute("select pg_create_logical_replication_slot('reported', 'pgoutput')")
        try:
            with writing(connected, "begin"):
                counts = counted_often(database(home, "moma"), "public.counted")
            # The slot reads what is in the log's file.
            cursor.execute("checkpoint")
            cursor.execute(
                "select (lsn - '0/0')::bigint, chr(get_byte(data, 0))"
                " from pg_logical_slot_get_binary_changes('reported', null, null,"
                " 'proto_version', '1', 'publication_names', 'captured')"
            )
            log = sorted(row for row in cursor.fetchall() if row[1] in "IDT")
        finally:
            cursor.execute("select pg_drop_replication_slot('reported')")

    assert len(log) > 1_000
    assert any(kind == "T" for _, kind in log)
    assert [counted.rows for counted in counts] == [
        rows_after(kind for place, kind in log if place < int(counted.position))
        for counted in counts
    ]
    assert len({counted.rows for counted in counts}) > 5
    assert all(len(counted.position) == 20 for counted in counts)


@needs_mariadb
def test_a_count_in_mariadb_is_that_of_its_place_in_the_log(home: Home) -> None:
    with closing(mariadb.connect(home)) as connection:
        connection.cursor().execute("create table counted (id int primary key)")

    def connected() -> Any:
        connection = mariadb.connect(home)
        # Without locks of gaps: writers of rows of their own do not meet.
        connection.cursor().execute("set session transaction isolation level read committed")
        return connection

    with writing(connected, "start transaction"):
        counts = counted_often(database(home, "ecomm"), "ecomm.counted")

    with closing(mariadb.connect(home, None, mariadb.ADMIN)) as connection:
        cursor = connection.cursor()
        cursor.execute("show binlog events in 'binlog.000001'")
        log = list(reported_of_counted(cursor.fetchall()))

    assert len(log) > 500
    assert any(kind == "T" for _, kind in log)
    assert [counted.rows for counted in counts] == [
        rows_after(kind for place, kind in log if place < counted.position) for counted in counts
    ]
    assert len({counted.rows for counted in counts}) > 5


def rows_after(kinds: Iterator[str]) -> int:
    rows = 0
    for kind in kinds:
        rows = {"I": rows + 1, "D": rows - 1, "T": 0}[kind]
    return rows


def reported_of_counted(events: Any) -> Iterator[tuple[str, str]]:
    """Place and kind of each change of the table, in the order of the log."""
    is_counted = False
    for file, place, kind, _, _, info in events:
        reported = f"{int(file.rpartition('.')[2]):010d}-{place:020d}-{0:011d}"
        if kind == "Table_map":
            is_counted = "ecomm.counted" in info
        elif kind.startswith("Write_rows") and is_counted:
            yield reported, "I"
        elif kind.startswith("Delete_rows") and is_counted:
            yield reported, "D"
        elif kind == "Query" and "truncate table counted" in info:
            yield reported, "T"


def test_a_writer_that_stays_holds_up_the_count_and_nobody_else(home: Home) -> None:
    with (
        closing(postgres.connect(home, "moma")) as idle,
        closing(postgres.connect(home, "moma")) as other,
    ):
        idle.cursor().execute("insert into artists (artist_id, name) values (-1, 'A')")
        longest = 0.0
        done: list[DatabaseError] = []

        def count() -> None:
            try:
                where = database(home, "moma")
                count_rows(where, "public.artists", Patience(0.1, 2.0))
            except DatabaseError as error:
                done.append(error)

        counting = threading.Thread(target=count)
        counting.start()
        other.autocommit = True
        while counting.is_alive():
            began = time.monotonic()
            other.cursor().execute("delete from artists where artist_id = -2")
            longest = max(longest, time.monotonic() - began)
        idle.rollback()

    (error,) = done
    assert "public.artists was locked for 2 s" in str(error)
    assert longest < 0.6


def test_the_counting_user_cannot_write(home: Home) -> None:
    where = database(home, "moma")
    with (
        closing(postgres.connect(home, where.name, postgres.RECONCILE)) as connection,
        pytest.raises(psycopg2.errors.InsufficientPrivilege),
    ):
        connection.cursor().execute("delete from artists")


@needs_mariadb
def test_the_counting_user_of_mariadb_cannot_write(home: Home) -> None:
    with (
        closing(mariadb.connect(home, "ecomm", mariadb.RECONCILE)) as connection,
        pytest.raises(pymysql.err.OperationalError, match="command denied"),
    ):
        connection.cursor().execute("delete from listing")


@needs_mariadb
def test_a_table_that_has_no_snapshots_is_refused(home: Home) -> None:
    with closing(mariadb.connect(home)) as connection:
        connection.cursor().execute("create table loose (id int) engine = Aria")
    with pytest.raises(MillraceError, match="Aria"):
        count_rows(database(home, "ecomm"), "ecomm.loose", PATIENCE)


def test_a_user_who_may_not_lock_is_reported_what_it_takes(home: Home, tmp_path: Path) -> None:
    text = (PROJECT / "profiles" / "ingest.yml").read_text()
    (tmp_path / "profiles").mkdir()
    file = tmp_path / "profiles" / "ingest.yml"
    file.write_text(text.replace("reconcile", "debezium"))
    where = database_of(read_target(file, "sandbox", home.environment()), "moma")
    assert where is not None

    with pytest.raises(DatabaseError, match=r"permission denied.*MAINTAIN"):
        count_rows(where, "public.artists", PATIENCE)
