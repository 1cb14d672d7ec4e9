"""A transaction in the making: what happens in it, seen by what happens next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from sandbox.databases.state import Change, DatabaseState, Kind
from sandbox.databases.tables import Row
from sandbox.streams.generator import Chance

Item = TypeVar("Item")
Weighted = tuple[tuple[float, Item], ...]

_ROLLED_BACK = 0.05
# How many things happen in a transaction: mostly one.
_PER_TRANSACTION: Weighted[int] = ((14, 1), (3, 2), (2, 3), (1, 5))
# A transaction that is too large for what is left is drawn again, at most so often.
_TRIES = 20


@dataclass(frozen=True)
class Transaction:
    """What is sent to a database between `begin` and its end.

    Attributes:
        changes: In their order.
        is_rolled_back: It ends with `rollback`; nothing of it remains.
    """

    changes: tuple[Change, ...]
    is_rolled_back: bool = False


class Txn:
    """What a transaction holds so far; all of it stands in the state already.

    Attributes:
        random: All chance of the run.
        state: The rows as this transaction sees them.
    """

    def __init__(self, random: Chance, state: DatabaseState) -> None:
        self.random = random
        self.state = state
        self.changes: list[Change] = []

    def draw(self, table: str) -> Row | None:
        """A row of a table at random; None where there is none."""
        return self.state.draw(table, self.random)

    def insert(self, table: str, row: Row) -> None:
        key = self.state.database.table(table).key_of(row)
        self._make(Change(table, Kind.INSERT, key, dict(row)))

    def update(self, table: str, row: Row, values: Row) -> Row:
        """Set some columns of a row; the row as it is then."""
        key = self.state.database.table(table).key_of(row)
        self._make(Change(table, Kind.UPDATE, key, values))
        return {**row, **values}

    def delete(self, table: str, row: Row) -> None:
        key = self.state.database.table(table).key_of(row)
        self._make(Change(table, Kind.DELETE, key, {}))

    def truncate(self, table: str) -> None:
        self._make(Change(table, Kind.TRUNCATE, (), {}))

    def _make(self, change: Change) -> None:
        self.state.apply(change)
        self.changes.append(change)


Operation = Callable[[Txn], None]
"""Something that happens in a transaction; where it cannot happen it changes nothing."""


def transactions(
    state: DatabaseState, operations: Weighted[Operation], seed: int, changes: int | None
) -> Iterator[Transaction]:
    """Random transactions on what stands in a database; the same ones for the same seed.

    After each the state are as that transaction leaves the database: one that is rolled
    back leaves them as they were. ``changes`` is how many are committed, exactly; None is
    without end. No transaction is empty.
    """
    # Only random() is promised to stay the same in every Python.
    random = Random(seed).random
    while changes is None or changes > 0:
        txn = _drawn(random, state, operations, changes)
        is_rolled_back = random() < _ROLLED_BACK
        if is_rolled_back:
            state.undo()
        else:
            state.keep()
            changes = None if changes is None else changes - len(txn.changes)
        yield Transaction(tuple(txn.changes), is_rolled_back)


def chosen(random: Chance, choices: Sequence[tuple[float, Item]]) -> Item:
    """One of several things, each as likely as its weight says."""
    at = random() * sum(weight for weight, _ in choices)
    for weight, item in choices:
        at -= weight
        if at < 0:
            return item
    return choices[-1][1]


def one_of(random: Chance, choices: Sequence[Item]) -> Item:
    """One of several things, all equally likely."""
    return choices[int(random() * len(choices))]


def whole(random: Chance, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``, both included."""
    return low + int(random() * (high - low + 1))


def _drawn(
    random: Chance, state: DatabaseState, operations: Weighted[Operation], most: int | None
) -> Txn:
    """A transaction of at most so many changes, and at least one.

    Raises:
        ValueError: Nothing that can happen is that small.
    """
    for _ in range(_TRIES):
        txn = Txn(random, state)
        for _ in range(chosen(random, _PER_TRANSACTION)):
            chosen(random, operations)(txn)
        if txn.changes and (most is None or len(txn.changes) <= most):
            return txn
        state.undo()
    for _, move in operations:
        txn = Txn(random, state)
        move(txn)
        if txn.changes and (most is None or len(txn.changes) <= most):
            return txn
        state.undo()
    raise ValueError(f"{state.database.name}: nothing can happen in one change")
