"""SQL for rows and changes, for PostgreSQL and MariaDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Protocol

from sandbox.databases.state import Change, Kind
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.transactions import Transaction
from spark_ingest.errors import MillraceError

_QUOTES = {"postgres": '"', "mariadb": "`"}
# Rows per statement, which may have some hundred kilobytes.
_CHUNK = 250


class Cursor(Protocol):
    """The used part of a driver's cursor."""

    @property
    def rowcount(self) -> int: ...

    def execute(self, statement: str, parameters: Any = ..., /) -> Any: ...

    def fetchall(self) -> Any: ...


class Connection(Protocol):
    """The used part of a connection of psycopg2 or PyMySQL."""

    def cursor(self) -> Any: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


class OtherWriter(MillraceError):
    """Another program changed rows that the random changes depend on."""


def quoted(database: Database, name: str) -> str:
    """A quoted identifier in the SQL of the database."""
    quote = _QUOTES[database.engine]
    return f"{quote}{name}{quote}"


def counts(database: Database, connection: Connection) -> dict[str, int]:
    """Number of rows by table."""
    cursor: Cursor = connection.cursor()
    found = {}
    for table in database.tables:
        cursor.execute(f"select count(*) from {quoted(database, table.name)}")
        found[table.name] = int(cursor.fetchall()[0][0])
    connection.rollback()
    return found


def stored(database: Database, connection: Connection) -> Iterator[tuple[str, Row]]:
    """All rows, ordered by table and key, with the columns that random changes use.

    Read in one transaction with snapshot isolation.
    """
    cursor: Cursor = connection.cursor()
    if database.engine == "postgres":
        cursor.execute("set transaction isolation level repeatable read")
    for table in database.tables:
        columns = _listed(database, table.columns)
        cursor.execute(
            f"select {columns} from {quoted(database, table.name)}"
            f" order by {_listed(database, table.key)}"
        )
        for values in cursor.fetchall():
            yield table.name, dict(zip(table.columns, values, strict=True))
    connection.rollback()


def fill(
    database: Database,
    connection: Connection,
    rows: Iterable[tuple[str, Row]],
    on_progress: Callable[[int], None] = lambda _: None,
) -> Counter[str]:
    """Insert rows, all in one transaction.

    Args:
        rows: Pairs of table name and row, grouped by table.
        on_progress: Called regularly with the number of written rows.

    Returns:
        Number of written rows by table.
    """
    written: Counter[str] = Counter()
    cursor: Cursor = connection.cursor()
    try:
        for name, group in groupby(rows, key=lambda pair: pair[0]):
            table = database.table(name)
            into = _insert_into(database, table.name, table.columns)
            one = f"({', '.join(['%s'] * len(table.columns))})"
            while chunk := [row for _, row in islice(group, _CHUNK)]:
                values = [row[column] for row in chunk for column in table.columns]
                cursor.execute(f"{into} values {', '.join([one] * len(chunk))}", values)
                written[name] += len(chunk)
                on_progress(written.total())
        connection.commit()
    except Exception:
        connection.rollback()
        raise
    return written


def carry_out(database: Database, connection: Connection, transaction: Transaction) -> None:
    """Execute a transaction, including its commit or rollback.

    Raises:
        OtherWriter: A row that it deletes does not exist.
    """
    cursor: Cursor = connection.cursor()
    try:
        for change in transaction.changes:
            statement, values = sql_of(database, change)
            cursor.execute(statement, values)
            # MariaDB reports 0 rows for an update that changes no value.
            if change.kind is Kind.DELETE and cursor.rowcount != 1:
                raise OtherWriter(
                    f"{database.name}.{change.table} has no row {change.key} (any more):"
                    " does another program write to it? Run it again when that has finished"
                )
    except Exception:
        connection.rollback()
        raise
    if transaction.is_rolled_back:
        connection.rollback()
    else:
        connection.commit()


def sql_of(database: Database, change: Change) -> tuple[str, Sequence[Any]]:
    """The SQL statement of a change, and its parameters."""
    name = quoted(database, change.table)
    where = " and ".join(
        f"{quoted(database, column)} = %s" for column in database.table(change.table).key
    )
    match change.kind:
        case Kind.INSERT:
            places = ", ".join(["%s"] * len(change.values))
            into = _insert_into(database, change.table, change.values)
            return f"{into} values ({places})", [*change.values.values()]
        case Kind.UPDATE:
            sets = ", ".join(f"{quoted(database, column)} = %s" for column in change.values)
            values = [*change.values.values(), *change.key]
            return f"update {name} set {sets} where {where}", values
        case Kind.DELETE:
            return f"delete from {name} where {where}", change.key
        case Kind.TRUNCATE:
            return f"truncate table {name}", ()


def upsert(database: Database, table: Table, columns: Sequence[str]) -> str:
    """The statement that upserts a row.

    ``columns`` are the written columns, in the order of the parameters; an existing row keeps
    the others.
    """
    into = _insert_into(database, table.name, columns)
    statement = f"{into} values ({', '.join(['%s'] * len(columns))})"
    # A row of key columns only is updated too, so that it is captured.
    changed = [column for column in columns if column not in table.key] or table.key
    if database.engine == "mariadb":
        sets = ", ".join(
            f"{quoted(database, column)} = values({quoted(database, column)})" for column in changed
        )
        return f"{statement} on duplicate key update {sets}"
    sets = ", ".join(
        f"{quoted(database, column)} = excluded.{quoted(database, column)}" for column in changed
    )
    key = _listed(database, table.key)
    return f"{statement} on conflict ({key}) do update set {sets}"


def _insert_into(database: Database, table: str, columns: Iterable[str]) -> str:
    return f"insert into {quoted(database, table)} ({_listed(database, columns)})"


def _listed(database: Database, columns: Iterable[str]) -> str:
    return ", ".join(quoted(database, column) for column in columns)
