"""What can happen to any table: rows come, change, get another key, go and come back.

Where rows refer to one another none is orphaned: a row goes, or gets another key, only while
nothing refers to it, and comes only while what it refers to is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.databases.tables import Row
from sandbox.databases.transactions import Operation, Txn, Weighted, whole


@dataclass(frozen=True)
class RowRules:
    """How the rows of a table come about and change.

    Attributes:
        table: The table's name.
        fresh: A new row under a key that was never used; None where there can be none now.
        edited: Other values for some columns of a row, none of them of its key.
        moved: A key that was never used, for a row; None where there can be none now.
        free: A row that nothing refers to; None where there is none now. Default: any row.
        fits: Whether what a row refers to is there, and has room for it. Default: it is.
    """

    table: str
    fresh: Callable[[Txn], Row | None]
    edited: Callable[[Txn, Row], Row]
    moved: Callable[[Txn, Row], Row | None]
    free: Callable[[Txn], Row | None] | None = None
    fits: Callable[[Txn, Row], bool] | None = None

    def drawn_free(self, txn: Txn) -> Row | None:
        """A row that may go or get another key."""
        return txn.draw(self.table) if self.free is None else self.free(txn)

    def insert_fitting(self, txn: Txn, row: Row) -> None:
        """Insert a row that may come."""
        if self.fits is None or self.fits(txn, row):
            txn.insert(self.table, row)


def operations_on(rules: RowRules, weight: float) -> Weighted[Operation]:
    """All that can happen to a table, with weights that add up to about ``weight``."""
    kinds: Weighted[Callable[[RowRules, Txn], None]] = (
        (0.36, _edit),
        (0.24, _insert),
        (0.14, _delete),
        (0.06, _move),
        (0.06, _edit_often),
        (0.04, _come_and_change),
        (0.04, _go_and_come),
        (0.03, _come_back),
        (0.02, _hand_over),
        (0.01, _touch),
    )
    return tuple((weight * share, _of(rules, kind)) for share, kind in kinds)


def _of(rules: RowRules, kind: Callable[[RowRules, Txn], None]) -> Operation:
    return lambda txn: kind(rules, txn)


def _edit(rules: RowRules, txn: Txn) -> None:
    row = txn.draw(rules.table)
    if row is not None:
        txn.update(rules.table, row, rules.edited(txn, row))


def _insert(rules: RowRules, txn: Txn) -> None:
    row = rules.fresh(txn)
    if row is not None:
        txn.insert(rules.table, row)


def _delete(rules: RowRules, txn: Txn) -> None:
    row = rules.drawn_free(txn)
    if row is not None:
        txn.delete(rules.table, row)


def _move(rules: RowRules, txn: Txn) -> None:
    """A row gets another key."""
    row = rules.drawn_free(txn)
    key = None if row is None else rules.moved(txn, row)
    if row is not None and key is not None:
        txn.update(rules.table, row, key)


def _edit_often(rules: RowRules, txn: Txn) -> None:
    """One row changes several times in one transaction."""
    row = txn.draw(rules.table)
    if row is not None:
        for _ in range(whole(txn.random, 2, 4)):
            row = txn.update(rules.table, row, rules.edited(txn, row))


def _come_and_change(rules: RowRules, txn: Txn) -> None:
    """A row comes and changes in one transaction, and every third time it goes again."""
    row = rules.fresh(txn)
    if row is not None:
        txn.insert(rules.table, row)
        row = txn.update(rules.table, row, rules.edited(txn, row))
        if txn.random() < 1 / 3:
            txn.delete(rules.table, row)


def _go_and_come(rules: RowRules, txn: Txn) -> None:
    """A row goes, and another comes under its key, in one transaction."""
    row = rules.drawn_free(txn)
    if row is not None:
        txn.delete(rules.table, row)
        rules.insert_fitting(txn, {**row, **rules.edited(txn, row)})


def _come_back(rules: RowRules, txn: Txn) -> None:
    """A row comes back that went in a transaction before."""
    row = txn.state.draw_gone(rules.table, txn.random)
    if row is not None:
        rules.insert_fitting(txn, row)


def _hand_over(rules: RowRules, txn: Txn) -> None:
    """A row gets another key, and another row comes under its old one."""
    row = rules.drawn_free(txn)
    key = None if row is None else rules.moved(txn, row)
    if row is not None and key is not None:
        txn.update(rules.table, row, key)
        rules.insert_fitting(txn, {**row, **rules.edited(txn, row)})


def _touch(rules: RowRules, txn: Txn) -> None:
    """An update that changes no value."""
    row = txn.draw(rules.table)
    if row is not None:
        values = rules.edited(txn, row)
        txn.update(rules.table, row, {column: row[column] for column in values})
