"""Random transactions: operations see the changes of those before them."""

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
# Number of operations in a transaction, with weights.
_PER_TRANSACTION: Weighted[int] = ((14, 1), (3, 2), (2, 3), (1, 5))
# How often a transaction is drawn again that exceeds the remaining number of changes.
_TRIES = 20


@dataclass(frozen=True)
class Transaction:
    """A complete transaction.

    Attributes:
        changes: The changes, in order.
        is_rolled_back: It ends with `rollback` instead of `commit`.
    """

    changes: tuple[Change, ...]
    is_rolled_back: bool = False


class Txn:
    """An open transaction; its changes are applied to the state at once.

    Attributes:
        random: The random generator of the run.
        state: The rows as this transaction sees them.
    """

    def __init__(self, random: Chance, state: DatabaseState) -> None:
        self.random = random
        self.state = state
        self.changes: list[Change] = []

    def draw(self, table: str) -> Row | None:
        """A random row of a table; None if it is empty."""
        return self.state.draw(table, self.random)

    def insert(self, table: str, row: Row) -> None:
        key = self.state.database.table(table).key_of(row)
        self._make(Change(table, Kind.INSERT, key, dict(row)))

    def update(self, table: str, row: Row, values: Row) -> Row:
        """Set some columns of a row; returns the updated row."""
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
"""An operation in a transaction; it changes nothing if it is not possible."""


def transactions(
    state: DatabaseState, operations: Weighted[Operation], seed: int, changes: int | None
) -> Iterator[Transaction]:
    """Random transactions on the state of a database, reproducible by seed.

    The state follows each transaction; a rollback leaves it unchanged. ``changes`` is the exact
    number of committed changes; None is unlimited. No transaction is empty.
    """
    # Only random() is guaranteed to be the same in every Python version.
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
    """A weighted random choice."""
    at = random() * sum(weight for weight, _ in choices)
    for weight, item in choices:
        at -= weight
        if at < 0:
            return item
    return choices[-1][1]


def one_of(random: Chance, choices: Sequence[Item]) -> Item:
    """A uniform random choice."""
    return choices[int(random() * len(choices))]


def whole(random: Chance, low: int, high: int) -> int:
    """A random integer from ``low`` to ``high``, inclusive."""
    return low + int(random() * (high - low + 1))


def _drawn(
    random: Chance, state: DatabaseState, operations: Weighted[Operation], most: int | None
) -> Txn:
    """A random transaction of 1 to ``most`` changes.

    Raises:
        ValueError: No operation is that small.
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
