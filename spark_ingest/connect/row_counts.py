"""The exact row count of a database table at a position of the database's log.

PostgreSQL logs a change when it happens, not when it is committed, so a position is exact for a
table only while no transaction is changing it: take a lock that waits for such transactions,
read the position and release the lock at once. MariaDB's binary log has whole transactions in
commit order, and a snapshot has its position: no lock is necessary.
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
    """The row count of a table at a position of its database's log.

    Attributes:
        position: The position, in the format of dbt's macro ``source_position``.
        rows: Number of rows.
        at: Time of the count, by this machine's clock.
        locked_seconds: Time for which writers were blocked, including the wait for the lock; 0
            without a lock.
    """

    position: str
    rows: int
    at: datetime
    locked_seconds: float = 0.0


@dataclass(frozen=True)
class Patience:
    """Timeouts of a count.

    Attributes:
        lock_seconds: Timeout of one attempt to lock, which blocks new writers.
        total_seconds: Timeout of all attempts together.
    """

    lock_seconds: float
    total_seconds: float


def count_rows(database: Database, table: str, patience: Patience) -> Counted:
    """Count a table's rows.

    ``table`` is ``schema.name``; ``patience`` has the timeouts.

    Raises:
        DatabaseError: A permission is missing, or others locked the table for too long.
        MillraceError: The log has no positions, or the table does not support snapshots.
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
        # Let blocked writers proceed first.
        time.sleep(max(patience.lock_seconds, _PAUSE_SECONDS))


def _in_postgresql(connection: Connection, table: str, lock_seconds: float) -> Counted:
    cursor = connection.cursor()
    name = ".".join('"' + part.replace('"', '""') + '"' for part in _parts(table))
    cursor.execute("begin isolation level repeatable read")
    cursor.execute(f"set local lock_timeout = {max(1, int(lock_seconds * 1000))}")
    # Keep this lock until the end: a later TRUNCATE would affect the snapshot, too.
    cursor.execute(f"lock table {name} in access share mode")
    cursor.execute("savepoint before_lock")
    began = time.monotonic()
    cursor.execute(f"lock table {name} in share mode")
    # The first query takes the transaction's snapshot, while no transaction is changing the
    # table. The insert position, since asynchronous commits may not be written or flushed yet.
    cursor.execute("select (pg_current_wal_insert_lsn() - '0/0')::text")
    (position,) = cursor.fetchone()
    at = datetime.now(UTC)
    # Releases the lock, but keeps the snapshot.
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
            f"{table} uses {engine}, which has no snapshots: alter table … engine = InnoDB"
        )
    cursor.execute("set session transaction isolation level repeatable read")
    cursor.execute("start transaction with consistent snapshot")
    at = datetime.now(UTC)
    cursor.execute("show status like 'binlog_snapshot_%'")
    status: dict[str, str] = {}
    while (row := cursor.fetchone()) is not None:
        status[row[0].lower()] = row[1]
    file, place = (status.get(f"binlog_snapshot_{part}") for part in ("file", "position"))
    if not file or not place:
        raise MillraceError(
            "the server does not report a snapshot's position in its binary log: this requires"
            " MariaDB with log_bin"
        )
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (schema, name))
    cursor.execute(f"select count(*) from {quoted}")
    (rows,) = cursor.fetchone()
    cursor.execute("commit")
    return Counted(binlog_position(file, int(place)), rows, at)


def binlog_position(file: str, place: int) -> str:
    """A position in a binary log, before the first row of the next event."""
    number = file.rpartition(".")[2]
    return f"{number.zfill(10)}-{place:020d}-{0:011d}"


def _parts(table: str) -> tuple[str, str]:
    schema, _, name = table.partition(".")
    return schema, name


def _explained(error: DatabaseError, table: str, patience: Patience) -> DatabaseError:
    text = str(error)
    if error.code in _TRY_AGAIN:
        text += (
            f"; {table} was locked for {patience.total_seconds:g} s, by a long transaction, a "
            "vacuum or an ALTER: retry later, or increase --lock-wait and --patience"
        )
    elif error.code in _NOT_ALLOWED:
        text += (
            "; the user requires SELECT, and in PostgreSQL MAINTAIN (17 and newer) or UPDATE "
            "for the lock"
        )
    return DatabaseError(text, error.code)
