"""How many rows a table of a database has at one place of the database's log, exactly.

PostgreSQL notes a change in its log when it is made, not when it is committed, so that a place
in the log is exact for a table only while nobody is changing it: a lock that waits for those who
are, and is let go at once, gives such a place. MariaDB's log has whole transactions in the order
of their commits, and a snapshot knows its place in it: no lock is needed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_ingest.connect.databases import Connection, Database, DatabaseError, opened
from spark_ingest.errors import MillraceError

# PostgreSQL: lock_not_available; MariaDB: the table was altered since the snapshot.
_TRY_AGAIN = ("55P03", "1412")
_NOT_ALLOWED = ("42501", "1142", "1143")
_PAUSE_SECONDS = 0.2


@dataclass(frozen=True)
class Counted:
    """A table at one place of its database's log.

    Attributes:
        position: The place, a text as dbt's macro ``source_position`` makes them.
        rows: How many rows the table had there.
        at: When that was, by this machine's clock.
        locked_seconds: For how long writers of the table were held up: the lock's wait and its
            own time; 0 where there is none.
    """

    position: str
    rows: int
    at: datetime
    locked_seconds: float = 0.0


@dataclass(frozen=True)
class Patience:
    """How long a count may wait.

    Attributes:
        lock_seconds: For a lock, at a time: writers that come meanwhile wait behind it.
        total_seconds: For all attempts together.
    """

    lock_seconds: float
    total_seconds: float


def count_rows(database: Database, table: str, patience: Patience) -> Counted:
    """Count a table's rows.

    ``table`` is ``schema.name``; ``patience`` is how long others may keep it waiting.

    Raises:
        DatabaseError: The database does not let us, or others kept the table for too long.
        MillraceError: It has no log that gives a place, or the table has no snapshots.
    """
    ends = time.monotonic() + patience.total_seconds
    while True:
        try:
            with opened(database) as connection:
                if database.engine == "postgresql":
                    return _in_postgresql(connection, table, patience.lock_seconds)
                return _in_mariadb(connection, table)
        except DatabaseError as error:
            if error.code not in _TRY_AGAIN or time.monotonic() > ends:
                raise _explained(error, table, patience) from error
        # Writers that waited behind the lock go first.
        time.sleep(max(patience.lock_seconds, _PAUSE_SECONDS))


def _in_postgresql(connection: Connection, table: str, lock_seconds: float) -> Counted:
    cursor = connection.cursor()
    name = ".".join('"' + part.replace('"', '""') + '"' for part in _parts(table))
    cursor.execute("begin isolation level repeatable read")
    cursor.execute(f"set local lock_timeout = {max(1, int(lock_seconds * 1000))}")
    # Until the end: a TRUNCATE behind the snapshot would empty the table for it, too.
    cursor.execute(f"lock table {name} in access share mode")
    cursor.execute("savepoint before_lock")
    began = time.monotonic()
    cursor.execute(f"lock table {name} in share mode")
    # The first query: the snapshot of all that follow is taken with it, while all who changed
    # the table have committed, and nobody does. What is written is too little: a commit need
    # not wait for that.
    cursor.execute("select (pg_current_wal_insert_lsn() - '0/0')::text")
    (position,) = cursor.fetchone()
    at = datetime.now(UTC)
    # Lets the lock go, not the snapshot.
    cursor.execute("rollback to savepoint before_lock")
    locked = time.monotonic() - began
    cursor.execute(f"select count(*) from {name}")
    (rows,) = cursor.fetchone()
    cursor.execute("commit")
    return Counted(position.zfill(20), rows, at, locked)


def _in_mariadb(connection: Connection, table: str) -> Counted:
    cursor = connection.cursor()
    schema, name = _parts(table)
    cursor.execute(
        "select engine from information_schema.tables where table_schema = %s and table_name = %s",
        (schema, name),
    )
    (engine,) = cursor.fetchone() or (None,)
    if engine not in ("InnoDB", None):
        raise MillraceError(
            f"{table} is kept by {engine}, which has no snapshots: alter table … engine = InnoDB"
        )
    cursor.execute("set session transaction isolation level repeatable read")
    cursor.execute("start transaction with consistent snapshot")
    at = datetime.now(UTC)
    cursor.execute("show status like 'binlog_snapshot_%'")
    said: dict[str, str] = {}
    while (row := cursor.fetchone()) is not None:
        said[row[0].lower()] = row[1]
    file, place = (said.get(f"binlog_snapshot_{part}") for part in ("file", "position"))
    if not file or not place:
        raise MillraceError(
            "the server does not say where in its binary log a snapshot is: it takes MariaDB"
            " with log_bin"
        )
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (schema, name))
    cursor.execute(f"select count(*) from {quoted}")
    (rows,) = cursor.fetchone()
    cursor.execute("commit")
    return Counted(binlog_position(file, int(place)), rows, at)


def binlog_position(file: str, place: int) -> str:
    """A place in a binary log, before the first row of what comes next there."""
    number = file.rpartition(".")[2]
    return f"{number.zfill(10)}-{place:020d}-{0:011d}"


def _parts(table: str) -> tuple[str, str]:
    schema, _, name = table.partition(".")
    return schema, name


def _explained(error: DatabaseError, table: str, patience: Patience) -> DatabaseError:
    text = str(error)
    if error.code in _TRY_AGAIN:
        text += (
            f"; somebody had {table} for {patience.total_seconds:g} s: a long transaction, a "
            "vacuum, an ALTER; come back later, or give --lock-wait and --patience"
        )
    elif error.code in _NOT_ALLOWED:
        text += (
            "; the user needs SELECT, and in PostgreSQL MAINTAIN (17 and newer) or UPDATE "
            "for the lock"
        )
    return DatabaseError(text, error.code)
