"""A table that is captured by queries: which rows a poll reads, and as what records."""

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
"""The tables that can be polled: PostgreSQL itself writes their rows as JSON."""
_TIMES = ("timestamp with time zone", "timestamp without time zone")
_ROWS_AT_A_TIME = 2_000


@dataclass(frozen=True)
class PolledRow:
    """A row that changed since the last poll.

    Attributes:
        key: Its primary key, as JSON.
        value: All of it, as JSON.
        updated_at: When it changed last, as PostgreSQL writes it and reads it again, to the
            microsecond.
    """

    key: str
    value: str
    updated_at: str


@dataclass(frozen=True)
class PolledTable:
    """A table and the column that says when a row changed last.

    Attributes:
        column: A timestamp that every change of a row sets to the time of its transaction.
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
        """Refuse a column that does not tell when a row changed.

        Raises:
            ConfigurationError: The table has no such column, or it is no timestamp.
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

        All of a poll is one statement with one upper bound, so rows of one time are never
        parted by the end of a batch. ``seen`` is the newest time of the polls before; None
        reads the table from its beginning.
        """
        column = quoted(self.database, self.column)
        key = [quoted(self.database, name) for name in self.table.key]
        pairs = ", ".join(
            f"'{name}', {said}" for name, said in zip(self.table.key, key, strict=True)
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
        """The rows that changed, the oldest change first, in one transaction of its own.

        ``seen`` is as in ``query``; rows that changed less than ``delay`` seconds ago are left
        to the next poll.
        """
        cursor: Cursor = connection.cursor()
        # PostgreSQL keeps the result: a table of any size is read.
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
            # `now()` is the beginning of a transaction: the next poll needs a new one.
            connection.rollback()
