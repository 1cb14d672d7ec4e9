"""Operations on any table: insert, update, change of key, delete and reinsert of rows.

They keep referential integrity: a row is deleted, or gets another key, only if no row refers to
it, and it is inserted only if the rows that it refers to exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.databases.tables import Row
from sandbox.databases.transactions import Operation, Txn, Weighted, whole


@dataclass(frozen=True)
class RowRules:
    """How rows of a table are created and changed.

    Attributes:
        table: The table's name.
        fresh: A new row with an unused key; None if there can be none now.
        edited: New values for some non-key columns of a row.
        moved: An unused key for a row; None if there can be none now.
        free: A row that no other refers to; None if there is none. Default: any row.
        fits: Whether the rows that a row refers to exist and allow it. Default: yes.
    """

    table: str
    fresh: Callable[[Txn], Row | None]
    edited: Callable[[Txn, Row], Row]
    moved: Callable[[Txn, Row], Row | None]
    free: Callable[[Txn], Row | None] | None = None
    fits: Callable[[Txn, Row], bool] | None = None

    def drawn_free(self, txn: Txn) -> Row | None:
        """A random row that may be deleted or get another key."""
        return txn.draw(self.table) if self.free is None else self.free(txn)

    def insert_fitting(self, txn: Txn, row: Row) -> None:
        """Insert a row if its references allow it."""
        if self.fits is None or self.fits(txn, row):
            txn.insert(self.table, row)


def operations_on(rules: RowRules, weight: float) -> Weighted[Operation]:
    """All operations on a table, with weights that add up to about ``weight``."""
    kinds: Weighted[Callable[[RowRules, Txn], None]] = (
        (0.36, _edit),
        (0.24, _insert),
        (0.14, _delete),
        (0.06, _change_key),
        (0.06, _edit_often),
        (0.04, _insert_and_update),
        (0.04, _replace),
        (0.03, _reinsert),
        (0.02, _reuse_key),
        (0.01, _update_unchanged),
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


def _change_key(rules: RowRules, txn: Txn) -> None:
    """Change the key of a row."""
    row = rules.drawn_free(txn)
    key = None if row is None else rules.moved(txn, row)
    if row is not None and key is not None:
        txn.update(rules.table, row, key)


def _edit_often(rules: RowRules, txn: Txn) -> None:
    """Update one row several times in one transaction."""
    row = txn.draw(rules.table)
    if row is not None:
        for _ in range(whole(txn.random, 2, 4)):
            row = txn.update(rules.table, row, rules.edited(txn, row))


def _insert_and_update(rules: RowRules, txn: Txn) -> None:
    """Insert and update a row in one transaction, and delete it every third time."""
    row = rules.fresh(txn)
    if row is not None:
        txn.insert(rules.table, row)
        row = txn.update(rules.table, row, rules.edited(txn, row))
        if txn.random() < 1 / 3:
            txn.delete(rules.table, row)


def _replace(rules: RowRules, txn: Txn) -> None:
    """Delete a row and insert another with its key, in one transaction."""
    row = rules.drawn_free(txn)
    if row is not None:
        txn.delete(rules.table, row)
        rules.insert_fitting(txn, {**row, **rules.edited(txn, row)})


def _reinsert(rules: RowRules, txn: Txn) -> None:
    """Insert a row again that an earlier transaction deleted."""
    row = txn.state.draw_gone(rules.table, txn.random)
    if row is not None:
        rules.insert_fitting(txn, row)


def _reuse_key(rules: RowRules, txn: Txn) -> None:
    """Change the key of a row, and insert another row with its old key."""
    row = rules.drawn_free(txn)
    key = None if row is None else rules.moved(txn, row)
    if row is not None and key is not None:
        txn.update(rules.table, row, key)
        rules.insert_fitting(txn, {**row, **rules.edited(txn, row)})


def _update_unchanged(rules: RowRules, txn: Txn) -> None:
    """An update that changes no value."""
    row = txn.draw(rules.table)
    if row is not None:
        values = rules.edited(txn, row)
        txn.update(rules.table, row, {column: row[column] for column in values})
