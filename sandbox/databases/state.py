"""The rows of a database in memory: by key, at random, with rollback of changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from enum import StrEnum
from typing import Any, NamedTuple

from sandbox.databases.tables import Database, Key, Row, Table
from sandbox.streams.generator import Chance

_REMEMBERED = 50
# Larger than any number in a column.
_ANY = 2**63


class Kind(StrEnum):
    """The kind of a change."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Change(NamedTuple):
    """One statement that changes one row, or truncates a table.

    Attributes:
        table: The table's name.
        kind: The kind of the statement.
        key: The key before the change, for an insert the new key; empty for a truncate.
        values: The new row for an insert, the changed columns for an update (including key
            columns if the key changes); empty for the others.
    """

    table: str
    kind: Kind
    key: Key
    values: Row


class _Rows:
    """The rows of one table, with constant-time choice of a random row."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.by_key: dict[Key, Row] = {}
        self._keys: list[Key] = []
        self._places: dict[Key, int] = {}
        # Indexes: keys by the value of a column, built on first use.
        self._holding: dict[str, dict[Any, dict[Key, None]]] = {}

    def add(self, row: Row) -> None:
        key = self.table.key_of(row)
        if key in self.by_key:
            raise ValueError(f"{self.table.name} has a row {key} already")
        self.by_key[key] = row
        self._places[key] = len(self._keys)
        self._keys.append(key)
        for column, keys in self._holding.items():
            keys.setdefault(row[column], {})[key] = None

    def take(self, key: Key) -> Row:
        row, place = self.by_key.pop(key), self._places.pop(key)
        for column, keys in self._holding.items():
            del keys[row[column]][key]
        last = self._keys.pop()
        if last != key:
            self._keys[place], self._places[last] = last, place
        return row

    def draw(self, random: Chance) -> Row | None:
        if not self._keys:
            return None
        return self.by_key[self._keys[int(random() * len(self._keys))]]

    def holding(self, column: str, value: Any) -> list[Row]:
        if column not in self._holding:
            keys = self._holding[column] = {}
            for key, row in self.by_key.items():
                keys.setdefault(row[column], {})[key] = None
        return [self.by_key[key] for key in self._holding[column].get(value, ())]


class DatabaseState:
    """All rows of a database, including the changes of the open transaction.

    ``rows`` are pairs of table name and row; their order affects the choice of random rows.
    """

    def __init__(self, database: Database, rows: Iterable[tuple[str, Row]]) -> None:
        self.database = database
        self._tables = {table.name: _Rows(table) for table in database.tables}
        self._largest: dict[tuple[str, str, int], int] = {}
        # Recently deleted rows, which may be inserted again.
        self._gone: dict[str, deque[Row]] = {
            table.name: deque(maxlen=_REMEMBERED) for table in database.tables
        }
        self._undo: list[tuple[str, _Rows | None, Row | None, Row | None]] = []
        for table, row in rows:
            self._add(table, row)

    def rows(self, table: str) -> Iterator[Row]:
        """Copies of the rows of a table."""
        return (copy(row) for row in self._tables[table].by_key.values())

    def count(self, table: str) -> int:
        return len(self._tables[table].by_key)

    def row(self, table: str, *key: object) -> Row | None:
        """The row with a key, read-only; None if there is none."""
        return self._tables[table].by_key.get(key)

    def has(self, table: str, *key: object) -> bool:
        return key in self._tables[table].by_key

    def draw(self, table: str, random: Chance) -> Row | None:
        """A random row, read-only; None if the table is empty."""
        return self._tables[table].draw(random)

    def draw_gone(self, table: str, random: Chance) -> Row | None:
        """A random recently deleted row whose key is unused."""
        gone = self._gone[table]
        if not gone:
            return None
        row = gone[int(random() * len(gone))]
        return None if self._key(table, row) in self._tables[table].by_key else row

    def holding(self, table: str, column: str, value: object) -> list[Row]:
        """The rows whose column has a value, read-only; by index."""
        return self._tables[table].holding(column, value)

    def next_number(self, table: str, column: str, above: int = 0) -> int:
        """The next value of a sequence; a value is used once, even if it is rolled back.

        All values are larger than those that the column ever contained, and than ``above``.
        """
        number = max(self.largest(table, column), above) + 1
        self._largest[table, column, _ANY] = number
        return number

    def largest(self, table: str, column: str, most: int = _ANY) -> int:
        """The largest number up to ``most`` that a column ever contained; 0 if none."""
        name = (table, column, most)
        if name not in self._largest:
            rows = self._tables[table].by_key.values()
            values = (row[column] for row in rows if row[column] <= most)
            self._largest[name] = max(values, default=0)
        return self._largest[name]

    def apply(self, change: Change) -> None:
        """Apply a change; ``undo`` reverts it until ``keep`` is called.

        Raises:
            KeyError: The row does not exist.
            ValueError: The new key is in use.
        """
        name, rows = change.table, self._tables[change.table]
        if change.kind is Kind.TRUNCATE:
            self._undo.append((name, rows, None, None))
            self._tables[name] = _Rows(rows.table)
            return
        before = after = None
        if change.kind is not Kind.INSERT:
            before = rows.take(change.key)
        if change.kind is not Kind.DELETE:
            after = {**(before or {}), **change.values}
            try:
                self._add(name, after)
            except ValueError:
                if before is not None:
                    rows.add(before)
                raise
        self._undo.append((name, None, before, after))

    def undo(self) -> None:
        """Roll back all changes since the last ``keep``."""
        while self._undo:
            name, emptied, before, after = self._undo.pop()
            if emptied is not None:
                self._tables[name] = emptied
            if after is not None:
                self._tables[name].take(self._key(name, after))
            if before is not None:
                self._tables[name].add(before)

    def keep(self) -> None:
        """Commit the changes since the last call."""
        for name, _, before, after in self._undo:
            if before is not None and after is None:
                self._gone[name].append(before)
        self._undo.clear()

    def _add(self, name: str, row: Row) -> None:
        self._tables[name].add(row)
        for (table, column, most), largest in self._largest.items():
            if table == name and largest < row[column] <= most:
                self._largest[table, column, most] = row[column]

    def _key(self, table: str, row: Row) -> Key:
        return self._tables[table].table.key_of(row)
