"""A table with query-based capture: the query of a poll, and the records of its rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.databases.columns import columns_of
from sandbox.databases.known import DATABASES
from sandbox.databases.statements import Connection, Cursor, quoted
from sandbox.databases.tables import Database, Table
from spark_ingest.errors import ConfigurationError

POLLABLE = {
    f"{database.name}.{table.name}": (database, table)
    for database in DATABASES.values()
    if database.engine == "postgres"
    for table in database.tables
}
"""The tables that can be polled: PostgreSQL converts their rows to JSON."""
_TIMES = ("timestamp with time zone", "timestamp without time zone")
_ROWS_AT_A_TIME = 2_000


@dataclass(frozen=True)
class PolledRow:
    """A row that changed since the last poll.

    Attributes:
        key: Its primary key, as JSON.
        value: All of it, as JSON.
        updated_at: Time of the last change in PostgreSQL's text format, in microseconds.
    """

    key: str
    value: str
    updated_at: str


@dataclass(frozen=True)
class PolledTable:
    """A table and its column with the time of the last change.

    Attributes:
        column: A timestamp that every change of a row sets to its transaction time.
    """

    database: Database
    table: Table
    column: str

    @property
    def name(self) -> str:
        return f"{self.database.name}.{self.table.name}"

    @property
    def topic(self) -> str:
        return f"{self.database.name}.poll.{self.table.name}"

    def check(self, connection: Connection) -> None:
        """Check that the column can hold the time of the last change.

        Raises:
            ConfigurationError: The table has no such column, or it is not a timestamp.
        """
        columns = columns_of(self.database, self.table, connection)
        times = [column.name for column in columns if column.type in _TIMES]
        if self.column not in times:
            has = f"its timestamps: {', '.join(times)}" if times else "it has none"
            raise ConfigurationError(
                f"--column {self.column}: {self.name} has no timestamp of that name; {has}"
            )

    def query(self, seen: str | None) -> str:
        """The statement of a poll, with a parameter for ``seen`` and one for the delay.

        A poll is one statement with one upper bound, so rows with equal timestamps are never
        split. ``seen`` is the newest timestamp of the previous polls; None reads the whole
        table.
        """
        column = quoted(self.database, self.column)
        key = [quoted(self.database, name) for name in self.table.key]
        pairs = ", ".join(
            f"'{name}', {column_name}"
            for name, column_name in zip(self.table.key, key, strict=True)
        )
        after = "" if seen is None else f"{column} > %(seen)s and "
        return (
            f"select json_build_object({pairs})::text, row_to_json(polled)::text,"
            f" {column}::text"
            f" from {quoted(self.database, self.table.name)} as polled"
            f" where {after}{column} <= now() - %(delay)s * interval '1 second'"
            f" order by {', '.join([column, *key])}"
        )

    def rows(self, connection: Connection, seen: str | None, delay: float) -> Iterator[PolledRow]:
        """The changed rows, oldest change first, read in one transaction.

        ``seen`` is as in ``query``; rows that changed less than ``delay`` seconds ago are left
        for the next poll.
        """
        cursor: Cursor = connection.cursor()
        # A server-side cursor: the table may be of any size.
        cursor.execute(
            f"declare polled_rows no scroll cursor for {self.query(seen)}",
            {"seen": seen, "delay": delay},
        )
        try:
            while True:
                cursor.execute(f"fetch {_ROWS_AT_A_TIME} from polled_rows")
                found = cursor.fetchall()
                if not found:
                    return
                for key, value, updated_at in found:
                    yield PolledRow(key, value, updated_at)
        finally:
            # `now()` is the start of the transaction: the next poll needs a new one.
            connection.rollback()
