"""What can happen to any table: rows come, change, get another key, go and come back.

Where rows refer to one another none is orphaned: a row goes, or gets another key, only while
nothing refers to it, and comes only while what it refers to is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.databases.draft import Draft, Move, Weighted, whole
from sandbox.databases.tables import Row


@dataclass(frozen=True)
class Habits:
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
    fresh: Callable[[Draft], Row | None]
    edited: Callable[[Draft, Row], Row]
    moved: Callable[[Draft, Row], Row | None]
    free: Callable[[Draft], Row | None] | None = None
    fits: Callable[[Draft, Row], bool] | None = None

    def drawn_free(self, draft: Draft) -> Row | None:
        """A row that may go or get another key."""
        return draft.draw(self.table) if self.free is None else self.free(draft)

    def insert_fitting(self, draft: Draft, row: Row) -> None:
        """Insert a row that may come."""
        if self.fits is None or self.fits(draft, row):
            draft.insert(self.table, row)


def moves_of(habits: Habits, weight: float) -> Weighted[Move]:
    """All that can happen to a table, with weights that add up to about ``weight``."""
    kinds: Weighted[Callable[[Habits, Draft], None]] = (
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
    return tuple((weight * share, _of(habits, kind)) for share, kind in kinds)


def _of(habits: Habits, kind: Callable[[Habits, Draft], None]) -> Move:
    return lambda draft: kind(habits, draft)


def _edit(habits: Habits, draft: Draft) -> None:
    row = draft.draw(habits.table)
    if row is not None:
        draft.update(habits.table, row, habits.edited(draft, row))


def _insert(habits: Habits, draft: Draft) -> None:
    row = habits.fresh(draft)
    if row is not None:
        draft.insert(habits.table, row)


def _delete(habits: Habits, draft: Draft) -> None:
    row = habits.drawn_free(draft)
    if row is not None:
        draft.delete(habits.table, row)


def _move(habits: Habits, draft: Draft) -> None:
    """A row gets another key."""
    row = habits.drawn_free(draft)
    key = None if row is None else habits.moved(draft, row)
    if row is not None and key is not None:
        draft.update(habits.table, row, key)


def _edit_often(habits: Habits, draft: Draft) -> None:
    """One row changes several times in one transaction."""
    row = draft.draw(habits.table)
    if row is not None:
        for _ in range(whole(draft.random, 2, 4)):
            row = draft.update(habits.table, row, habits.edited(draft, row))


def _come_and_change(habits: Habits, draft: Draft) -> None:
    """A row comes and changes in one transaction, and every third time it goes again."""
    row = habits.fresh(draft)
    if row is not None:
        draft.insert(habits.table, row)
        row = draft.update(habits.table, row, habits.edited(draft, row))
        if draft.random() < 1 / 3:
            draft.delete(habits.table, row)


def _go_and_come(habits: Habits, draft: Draft) -> None:
    """A row goes, and another comes under its key, in one transaction."""
    row = habits.drawn_free(draft)
    if row is not None:
        draft.delete(habits.table, row)
        habits.insert_fitting(draft, {**row, **habits.edited(draft, row)})


def _come_back(habits: Habits, draft: Draft) -> None:
    """A row comes back that went in a transaction before."""
    row = draft.contents.draw_gone(habits.table, draft.random)
    if row is not None:
        habits.insert_fitting(draft, row)


def _hand_over(habits: Habits, draft: Draft) -> None:
    """A row gets another key, and another row comes under its old one."""
    row = habits.drawn_free(draft)
    key = None if row is None else habits.moved(draft, row)
    if row is not None and key is not None:
        draft.update(habits.table, row, key)
        habits.insert_fitting(draft, {**row, **habits.edited(draft, row)})


def _touch(habits: Habits, draft: Draft) -> None:
    """An update that changes no value."""
    row = draft.draw(habits.table)
    if row is not None:
        values = habits.edited(draft, row)
        draft.update(habits.table, row, {column: row[column] for column in values})
