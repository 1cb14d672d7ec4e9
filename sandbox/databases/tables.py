"""Definitions of tables and databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.databases.transactions import Operation

Row = dict[str, Any]
"""Values by column, as the database drivers represent them."""
Key = tuple[Any, ...]
"""The values of a row's key columns."""


@dataclass(frozen=True)
class Table:
    """A table for random rows.

    Attributes:
        name: Its name in the database.
        key: The columns of its primary key.
        columns: The written columns, including the key; the database fills the others.
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
        name: Its name on the server.
        engine: Its service: ``postgres`` or ``mariadb``.
        connector: The connector that captures it.
        command: The command of `sandbox produce` that fills and changes it.
        tables: Its tables.
        size: Default number of initial rows of its first table; for the ticket shop the
            number of listings.
        rows: The initial rows for a seed and a size, as pairs of table name and row.
        operations: Random operations with their weights.
        truncates: Additional operations with `--truncates`.
        help: First paragraph of `sandbox produce COMMAND --help`.
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
