"""Databases that change at random, and what they hold: the truth of the truth test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from random import Random
from typing import Any

from sandbox.databases import statements
from sandbox.databases.server import opened
from sandbox.databases.state import Change, DatabaseState, Kind
from sandbox.databases.statements import Connection, quoted
from sandbox.databases.tables import Database, Key, Row
from sandbox.databases.transactions import Transaction, transactions
from sandbox.settings import Home
from tests.python.parity.relations import Cell, Relation

_ROWS = 40
_RATE = 25.0
_BETWEEN_MOMENTS = (3.0, 6.0)
# A statement of Spark that reads a table while it gets a column has to be run again.
_BETWEEN_SCHEMA_CHANGES = 60.0
# Before and behind an instant nothing is committed. MariaDB's log has whole seconds: a change
# of the second that an instant lies in could be before it or behind it.
_PAUSES = {"postgres": 0.05, "mariadb": 1.2}
_CLOCKS = {
    "postgres": "select clock_timestamp() at time zone 'UTC'",
    "mariadb": "select utc_timestamp(6)",
}
# By database a table whose whole numbers PostgreSQL compares at the end of a statement, and how
# often, in seconds, some of its rows take the key of the next row.
_SHIFTED = {"moma": "artworks"}
_BETWEEN_SHIFTS = 2.0
# By database a table and values of it that PostgreSQL has and a lake has not: they become null.
_BEYOND: dict[str, tuple[str, Row]] = {
    "moma": ("artworks", {"acquisition_date": "infinity", "weight_kg": Decimal("NaN")})
}
# What psycopg2 makes of an infinite date.
_INFINITE = (date.min, date.max)
# PostgreSQL stores parts of rows of more than about 2,000 bytes apart, and compressed.
_APART = 500
# What a state says besides what is in the database.
_OWN_COLUMNS = {"is_incomplete", "valid_from_at", "_commit_id"}

State = dict[str, dict[Key, Row]]
"""Rows by table and key, all columns."""


@dataclass(frozen=True)
class Captured:
    """A captured table and its models.

    Attributes:
        table: Its name in the database.
        models: What the names of its models begin with: ``int_moma__artists``.
        renamed: Columns of the models that have another name in the database.
        derived: Columns that the models make of others.
    """

    table: str
    models: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    derived: frozenset[str] = frozenset()

    @property
    def held(self) -> str:
        return f"{self.models}_current"

    @property
    def history(self) -> str:
        return f"{self.models}_history"

    @property
    def instants(self) -> str:
        return f"{self.models}_at_instants"


@dataclass(frozen=True)
class Lane:
    """A database whose changes are followed to the tables.

    Attributes:
        database: Which.
        source: dbt's source of its tables.
        tables: Those with models.
        truncates: Whether its form shows a TRUNCATE.
    """

    database: Database
    source: str
    tables: tuple[Captured, ...]
    truncates: bool = False


@dataclass(frozen=True)
class Moment:
    """What a database held at an instant at which nothing was under way."""

    at: datetime
    state: State


class Writer:
    """Changes one database at random, and logs what it holds in pauses.

    Args:
        home: The sandbox.
        lane: Its database.
        seed: Of all chance.
        report: Shows a line.
    """

    def __init__(self, home: Home, lane: Lane, seed: int, report: Callable[[str], None]) -> None:
        self.lane = lane
        self.changes = 0
        self.moments: list[Moment] = []
        self.rekeyed: set[tuple[str, Key]] = set()
        self._home = home
        self._seed = seed
        self._random = Random(seed)
        self._report = report

    def fill(self) -> None:
        """What stands there before anything is captured."""
        database = self.lane.database
        with opened(self._home, database) as connection:
            statements.fill(database, connection, database.rows(self._seed, _ROWS))
            if shifted := _SHIFTED.get(database.name):
                (key,) = database.table(shifted).key
                connection.cursor().execute(
                    f"alter table {shifted} drop constraint {shifted}_pkey,"
                    f" add primary key ({key}) deferrable"
                )
                connection.commit()

    def write(self, stopping: threading.Event, logging: threading.Event) -> None:
        """Go on until stopped; states are logged from when they shall be."""
        database = self.lane.database
        operations = database.operations + (database.truncates if self.lane.truncates else ())
        with opened(self._home, database) as connection:
            state = DatabaseState(database, statements.stored(database, connection))
            schema_changes = self._schema_changes()
            next_moment = next_alter = next_shift = 0.0
            for transaction in transactions(state, operations, self._seed, None):
                now = time.monotonic()
                if stopping.is_set():
                    break
                if logging.is_set() and now > next_moment:
                    self._log(connection)
                    next_moment = now + self._random.uniform(*_BETWEEN_MOMENTS)
                if logging.is_set() and now > next_alter:
                    if next_alter:
                        self._alter(connection, next(schema_changes))
                    next_alter = now + _BETWEEN_SCHEMA_CHANGES
                self._carry_out(connection, transaction)
                if database.name in _SHIFTED and now > next_shift:
                    self._shift(connection, state, _SHIFTED[database.name])
                    self._go_beyond(connection, state, *_BEYOND[database.name])
                    next_shift = now + _BETWEEN_SHIFTS
            self._log(connection)

    def state(self) -> State:
        """What the database holds now."""
        with opened(self._home, self.lane.database) as connection:
            return _state(self.lane, connection)

    def _carry_out(self, connection: Connection, transaction: Transaction) -> None:
        statements.carry_out(self.lane.database, connection, transaction)
        if not transaction.is_rolled_back:
            self.changes += len(transaction.changes)
            for change in transaction.changes:
                columns = self.lane.database.table(change.table).key
                if change.kind is Kind.UPDATE and change.values.keys() & set(columns):
                    old = dict(zip(columns, change.key, strict=True))
                    key = tuple((old | change.values)[column] for column in columns)
                    self.rekeyed.add((change.table, key))
        time.sleep(self._random.uniform(0, 2) * len(transaction.changes) / _RATE)

    def _shift(self, connection: Connection, state: DatabaseState, table: str) -> None:
        """A few rows, one behind the other, take the key of the next: `set id = id + 1`."""
        (key,) = self.lane.database.table(table).key
        row = state.draw(table, self._random.random)
        if row is None:
            return
        first = last = row[key]
        while state.has(table, last + 1):
            last += 1
        first = max(first, last - 3)
        connection.cursor().execute(
            f"update {table} set {key} = {key} + 1 where {key} between %s and %s", (first, last)
        )
        connection.commit()
        for number in range(last, first - 1, -1):
            change = Change(table, Kind.UPDATE, (number,), {key: number + 1})
            state.apply(change)
            self.rekeyed.add((table, (number + 1,)))
            self.changes += 1
        state.keep()

    def _go_beyond(
        self, connection: Connection, state: DatabaseState, table: str, values: Row
    ) -> None:
        """A row gets one of the values that become null."""
        row = state.draw(table, self._random.random)
        if row is None:
            return
        column = self._random.choice(sorted(values))
        key = self.lane.database.table(table).key_of(row)
        change = Change(table, Kind.UPDATE, key, {column: values[column]})
        state.apply(change)
        state.keep()
        self._carry_out(connection, Transaction((change,)))

    def _log(self, connection: Connection) -> None:
        engine = self.lane.database.engine
        time.sleep(_PAUSES[engine])
        state = _state(self.lane, connection)
        cursor = connection.cursor()
        cursor.execute(_CLOCKS[engine])
        self.moments.append(Moment(cursor.fetchall()[0][0], state))
        connection.rollback()
        time.sleep(_PAUSES[engine])

    def _alter(self, connection: Connection, words: str) -> None:
        self._report(f"{self.lane.database.name}: {words}")
        connection.cursor().execute(words)
        connection.commit()

    def _schema_changes(self) -> Iterator[str]:
        """Columns that come, are used, grow and go: the models know nothing of them."""
        database = self.lane.database
        widen = {"postgres": "alter column {} type", "mariadb": "modify column {}"}
        for number in count(1):
            table = self._random.choice(self.lane.tables).table
            column = f"remark_{number}"
            alter = f"alter table {quoted(database, table)}"
            yield f"{alter} add column {column} integer"
            key = quoted(database, database.table(table).key[0])
            yield f"update {quoted(database, table)} set {column} = 7 where {key} % 3 = 0"
            yield f"{alter} {widen[database.engine].format(column)} bigint"
            yield f"{alter} drop column {column}"


def _state(lane: Lane, connection: Connection) -> State:
    found: State = {}
    cursor: Any = connection.cursor()
    if lane.database.engine == "postgres":
        cursor.execute("set transaction isolation level repeatable read")
    for captured in lane.tables:
        table = lane.database.table(captured.table)
        cursor.execute(f"select * from {quoted(lane.database, table.name)}")
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        found[table.name] = {table.key_of(row): row for row in rows}
    connection.rollback()
    return found


def compared(
    lane: Lane,
    captured: Captured,
    state: State,
    relation: Relation,
    rekeyed: Set[tuple[str, Key]] = frozenset(),
) -> tuple[int, list[str]]:
    """Hold what a model says that a table held against what it held.

    Args:
        lane: Its database.
        captured: The table.
        state: What the database held.
        relation: What the model has.
        rekeyed: Rows that an update gave their key, by table and key: it creates a row, and
            leaves out large values that nothing has under this key before.

    Returns:
        How many cells were looked at, and what is otherwise, each in a line.
    """
    names = [column.name for column in relation.columns]
    there = {name: captured.renamed.get(name, name) for name in names}
    here = {column: name for name, column in there.items()}
    reported, cells = [], 0
    without_values = {tuple(map(str, key)) for table, key in rekeyed if table == captured.table}
    found: dict[tuple[str, ...], dict[str, Cell]] = {}
    for row in (dict(zip(names, row, strict=True)) for row in relation.rows):
        key = tuple(str(row[here[column]]) for column in lane.database.table(captured.table).key)
        if key in found:
            reported.append(f"{key}: two rows")
        if row["is_incomplete"] != "false" and key not in without_values:
            reported.append(f"{key}: is incomplete")
        found[key] = row
    wanted = {tuple(map(str, key)): row for key, row in state[captured.table].items()}
    for key in sorted(wanted.keys() | found.keys()):
        if key not in wanted or key not in found:
            reported.append(f"{key}: {'a' if key in found else 'no'} row")
            continue
        for column in relation.columns:
            if column.name in _OWN_COLUMNS | captured.derived:
                continue
            value = wanted[key][there[column.name]]
            may_be_unknown = (
                key in without_values
                and found[key]["is_incomplete"] == "true"
                and len(str(value).encode()) > _APART
            )
            if may_be_unknown and found[key][column.name] is None:
                continue
            cells += 1
            cell = _cell(value, column.type)
            if cell != found[key][column.name]:
                reported.append(
                    f"{key} {column.name}: {cell!r} in the database,"
                    f" {found[key][column.name]!r} held"
                )
    return cells, reported


def _cell(value: Any, kind: str) -> Cell:
    """A value of a database's driver as a column of a type shows it."""
    is_nan = isinstance(value, Decimal) and value.is_nan()
    if value is None or value in _INFINITE or is_nan:
        return None
    if kind == "boolean":
        return str(bool(value)).lower()
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2])
        kept = Decimal(value).quantize(Decimal(1).scaleb(-scale))
        # A column that is too narrow has lost something.
        return f"{kept if kept == value else value:f}"
    if isinstance(value, datetime):
        utc = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        text = utc.isoformat(" ")
        return text.rstrip("0") if "." in text else text
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        return ", ".join("null" if text is None else text for text in value)
    # Blanks at the end of a text do not count: staging takes them away.
    return str(value).rstrip(" ")
