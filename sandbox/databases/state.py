"""What stands in a database, in memory: rows by key, one at random, and changes undone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from copy import copy
from enum import StrEnum
from typing import Any, NamedTuple

from sandbox.databases.tables import Database, Key, Row, Table
from sandbox.streams.generator import Chance

_REMEMBERED = 50
# No number is larger.
_ANY = 2**63


class Kind(StrEnum):
    """What a change does."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"
    TRUNCATE = "truncate"


class Change(NamedTuple):
    """One statement that changes one row, or empties a table.

    Attributes:
        table: The table's name.
        kind: What it does.
        key: Of the row before the change, of the new row for an insert; empty for a truncate.
        values: The whole new row for an insert, the columns that an update sets (those of
            the key too when the row gets another); empty for the others.
    """

    table: str
    kind: Kind
    key: Key
    values: Row


class _Rows:
    """The rows of one table, and their keys in an order in which one can be drawn."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.by_key: dict[Key, Row] = {}
        self._keys: list[Key] = []
        self._places: dict[Key, int] = {}
        # Keys by the value of a column, of the columns that were asked for.
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
    """All rows of a database, as its transactions leave them.

    ``rows`` come with their tables' names; drawing a row goes by their order too.
    """

    def __init__(self, database: Database, rows: Iterable[tuple[str, Row]]) -> None:
        self.database = database
        self._tables = {table.name: _Rows(table) for table in database.tables}
        self._largest: dict[tuple[str, str, int], int] = {}
        # Rows that were deleted last, for those that come back.
        self._gone: dict[str, deque[Row]] = {
            table.name: deque(maxlen=_REMEMBERED) for table in database.tables
        }
        self._undo: list[tuple[str, _Rows | None, Row | None, Row | None]] = []
        for table, row in rows:
            self._add(table, row)

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table now, each a copy."""
        return (copy(row) for row in self._tables[table].by_key.values())

    def count(self, table: str) -> int:
        return len(self._tables[table].by_key)

    def row(self, table: str, *key: object) -> Row | None:
        """The row of a key, not to be changed; None where there is none."""
        return self._tables[table].by_key.get(key)

    def has(self, table: str, *key: object) -> bool:
        return key in self._tables[table].by_key

    def draw(self, table: str, random: Chance) -> Row | None:
        """A row at random, not to be changed; None where there is none."""
        return self._tables[table].draw(random)

    def draw_gone(self, table: str, random: Chance) -> Row | None:
        """A row that was deleted lately and whose key is free."""
        gone = self._gone[table]
        if not gone:
            return None
        row = gone[int(random() * len(gone))]
        return None if self._key(table, row) in self._tables[table].by_key else row

    def holding(self, table: str, column: str, value: object) -> list[Row]:
        """The rows whose column has a value, not to be changed; found without a search."""
        return self._tables[table].holding(column, value)

    def next_number(self, table: str, column: str, above: int = 0) -> int:
        """One more than a column has ever held; a number is given once, undone or not.

        ``above`` is what a first number is above, whatever the column holds.
        """
        number = max(self.largest(table, column), above) + 1
        self._largest[table, column, _ANY] = number
        return number

    def largest(self, table: str, column: str, most: int = _ANY) -> int:
        """The largest number of at most ``most`` that a column has ever held; 0 is none."""
        name = (table, column, most)
        if name not in self._largest:
            rows = self._tables[table].by_key.values()
            held = (row[column] for row in rows if row[column] <= most)
            self._largest[name] = max(held, default=0)
        return self._largest[name]

    def apply(self, change: Change) -> None:
        """Make a change; ``undo`` takes it back until ``keep`` is called.

        Raises:
            KeyError: The row is not there.
            ValueError: Its new key is taken.
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
        """Take back all changes since the last ``keep``."""
        while self._undo:
            name, emptied, before, after = self._undo.pop()
            if emptied is not None:
                self._tables[name] = emptied
            if after is not None:
                self._tables[name].take(self._key(name, after))
            if before is not None:
                self._tables[name].add(before)

    def keep(self) -> None:
        """The changes since the last call are committed."""
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
