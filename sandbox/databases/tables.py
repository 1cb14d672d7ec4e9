"""What the sandbox knows of a table and of a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.databases.transactions import Operation

Row = dict[str, Any]
"""Values by column: as Python's drivers of the database take and give them."""
Key = tuple[Any, ...]
"""The values of a row's key columns."""


@dataclass(frozen=True)
class Table:
    """A table that random rows are written to.

    Attributes:
        name: As the database has it.
        key: The columns of its primary key.
        columns: The columns that a row is given, those of the key among them; the
            database itself fills the others.
    """

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]

    def key_of(self, row: Row) -> Key:
        return tuple(row[column] for column in self.key)


@dataclass(frozen=True)
class Database:
    """A database of the sandbox.

    Attributes:
        name: As the server has it.
        engine: Its server: ``postgres`` or ``mariadb``, the names of the services.
        connector: The connector that captures it.
        command: The command of `sandbox produce` that fills and changes it.
        tables: Its tables.
        size: How large it begins, where nobody says otherwise: rows of its first table; of
            the ticket shop's databases the listings, for all three.
        rows: The rows that it begins with, each with its table's name, for a seed and a
            size; the same ones for the same two.
        operations: What can happen to it, each with its weight against the others.
        truncates: What happens besides where tables may be emptied at once.
        help: What `sandbox produce COMMAND --help` says of it.
    """

    name: str
    engine: str
    connector: str
    command: str
    tables: tuple[Table, ...]
    size: int
    rows: Callable[[int, int], Iterator[tuple[str, Row]]]
    operations: tuple[tuple[float, Operation], ...]
    help: str
    truncates: tuple[tuple[float, Operation], ...] = ()

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)
