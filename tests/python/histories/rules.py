"""What a history must be: the rules of decision 0012 in plain Python, one change after another.

It shares nothing with the macros but the form of what comes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.python.histories.lake import Change
from tests.python.histories.options import ATTRIBUTES, LEFT_OUT, Options

Place = tuple[int, int, str]
"""Where a change lies in the order of its row: which of the database's logs, a position in it,
and what it is there."""
NOWHERE: Place = (-1, 0, "")


@dataclass(frozen=True)
class Version:
    """What a row held from one change until the next.

    Attributes:
        row: Its number.
        values: Of ``ATTRIBUTES``.
        is_deleted: The row was gone.
        is_incomplete: A value that no change ever said is null.
        since: When it begins.
        until: When it ends; none for the one that holds.
        place: Of the change that it begins with.
    """

    row: int
    values: tuple[Any, ...]
    is_deleted: bool
    is_incomplete: bool
    since: datetime | None
    until: datetime | None
    place: Place


@dataclass(frozen=True)
class _Placed:
    change: Change
    place: Place
    at: datetime | None


def versions(changes: Iterable[Change], options: Options) -> list[Version]:
    """All versions of all rows, by row and in their order."""
    by_row: dict[int, list[Change]] = defaultdict(list)
    truncates = []
    for change in _shown(changes, options):
        if change.row is not None:
            by_row[change.row].append(change)
        elif options.truncates:
            truncates.append(change)
    found = []
    for row in sorted(by_row):
        placed = _in_order(by_row[row], truncates, options)
        found += _versions_of(row, placed, options)
    return found


def is_unplaced(change: Change) -> bool:
    """Whether nothing says of which row it is, or where it lies in its order."""
    has_position = change.position is not None or change.kind == "tombstone"
    return change.is_without_key or not has_position


def _shown(changes: Iterable[Change], options: Options) -> Iterator[Change]:
    """The changes that have a place, as the form of their records shows them."""
    for change in changes:
        if is_unplaced(change):
            continue
        shown = change
        if change.kind == "tombstone" or options.position == "numbers":
            shown = replace(shown, committed_at=change.sent_at)
        elif options.position == "moment" and change.position is not None:
            shown = replace(shown, committed_at=options.moment(change.position))
        if options.form == "rows" and change.kind in ("create", "snapshot"):
            shown = replace(shown, kind="update")
        yield shown


def _in_order(
    changes: Sequence[Change], truncates: Sequence[Change], options: Options
) -> list[_Placed]:
    """The changes of one row in the order of the log, each place once, truncates among them."""
    placed = []
    for partition in {change.partition for change in changes}:
        mine = [change for change in changes if change.partition == partition]
        placed += _placed(sorted(mine, key=lambda change: change.offset), options)
    first = min(each.place for each in placed)
    for truncate in truncates:
        place = _place(truncate, "c", options)
        if first < place:
            ended = replace(truncate, kind="delete", values=(None,) * len(ATTRIBUTES))
            placed.append(_Placed(ended, place, truncate.committed_at))
    # Of two at one place the later one holds, as it was read.
    placed.sort(
        key=lambda each: (
            each.place,
            each.change.commit_id,
            each.change.partition,
            each.change.offset,
        )
    )
    times: dict[Place, datetime] = {}
    for each in placed:
        if each.at is not None:
            times[each.place] = max(each.at, times.get(each.place, each.at))
    last = {each.place: each for each in placed}
    in_order = [replace(each, at=times.get(place)) for place, each in last.items()]
    # The other databases check each row as it is written: a key is free when it is taken.
    return list(_of_the_row(in_order)) if options.position == "lsn" else in_order


def _place(change: Change, what: str, options: Options) -> Place:
    assert change.position is not None
    restart = options.restarts_at
    return int(restart is not None and change.sent_at >= restart), change.position, what


def _placed(changes: Sequence[Change], options: Options) -> list[_Placed]:
    """The changes of one row in one partition, as they came, with their places."""
    placed: list[_Placed] = []
    places: dict[tuple[Place, bool], Place] = {}
    last = NOWHERE
    snapshot: tuple[Place, datetime] | None = None
    before: Change | None = None
    for change in changes:
        at: datetime | None = change.committed_at
        if change.kind == "tombstone":
            place = (*last[:2], f"{last[2]}b") if last != NOWHERE else NOWHERE
            if before is not None and before.is_deleted:
                at = None
        else:
            own = _place(change, "", options)
            place = (*own[:2], "" if change.kind == "snapshot" else "c")
            if change.kind == "snapshot":
                here = (place, change.committed_at)
                snapshot = max(here, snapshot) if snapshot else here
            elif snapshot and own < snapshot[0] and change.committed_at >= snapshot[1]:
                # Its transaction was open while the snapshot was taken.
                place = (*snapshot[0][:2], f"s{options.position_text(*own[:2])}")
            # What is sent again lies where it lay.
            known = own, change.kind == "snapshot"
            place = last = places.setdefault(known, place)
        placed.append(_Placed(change, place, at))
        before = change
    return placed


def _of_the_row(placed: Sequence[_Placed]) -> Iterator[_Placed]:
    """The changes in order, but for deletes of another row that had the key.

    A transaction may give a row a key that another row frees later in it (``set id = id + 1``
    with a deferrable key). A committed one leaves one row or none, so what it has of creates and
    deletes says mostly whether there was one before.
    """
    more = {"create": 1, "delete": -1}
    in_all: dict[Any, int] = defaultdict(int)
    begins_with: dict[Any, str] = {}
    so_far: dict[Any, int] = defaultdict(int)
    for each in placed:
        if not _is_of_no_transaction(each.change):
            in_all[_transaction(each)] += more.get(each.change.kind, 0)
            begins_with.setdefault(_transaction(each), each.change.kind)
    was_there, is_behind_delete, is_behind_another = 0, False, False
    for each in placed:
        change, of = each.change, _transaction(each)
        is_another = False
        if change.kind == "tombstone":
            is_another = is_behind_another
            if not is_behind_delete:
                was_there = 0
        elif _is_of_no_transaction(change):
            was_there = int(change.kind == "snapshot")
        else:
            so_far[of] += more.get(change.kind, 0)
            is_said = in_all[of] != 0 or begins_with[of] != "create"
            there_before = int(in_all[of] <= 0) if is_said else was_there
            is_another = change.kind == "delete" and there_before + so_far[of] > 0
            if is_said:
                was_there = int(in_all[of] >= 0)
        is_behind_delete = change.is_deleted
        is_behind_another = is_another and change.kind == "delete"
        if not is_another:
            yield each


def _is_of_no_transaction(change: Change) -> bool:
    is_truncate = change.row is None
    return is_truncate or change.kind in ("tombstone", "snapshot")


def _transaction(each: _Placed) -> tuple[int, datetime]:
    return each.change.partition, each.change.committed_at


def _versions_of(row_number: int, placed: Sequence[_Placed], options: Options) -> list[Version]:
    tracked = ATTRIBUTES if options.track is None else options.track
    found: list[Version] = []
    clock: datetime | None = None
    row: dict[str, Any] | None = None
    for each in placed:
        change = each.change
        if each.at is not None:
            clock = each.at if clock is None else max(clock, each.at)
        if change.is_deleted:
            if not found or not found[-1].is_deleted:
                last = found[-1] if found else None
                found.append(
                    Version(
                        row_number,
                        last.values if last else (None,) * len(ATTRIBUTES),
                        True,
                        last.is_incomplete if last else True,
                        clock,
                        None,
                        each.place,
                    )
                )
            row = None
            continue
        row = _filled(change, row, options)
        values = tuple(None if of == LEFT_OUT else of for of in row.values())
        is_incomplete = any(of == LEFT_OUT for of in row.values())
        held = found[-1] if found and not found[-1].is_deleted else None
        if held and all(
            held.values[at] == values[at] for at, name in enumerate(ATTRIBUTES) if name in tracked
        ):
            found[-1] = replace(held, values=values, is_incomplete=is_incomplete)
            continue
        found.append(Version(row_number, values, False, is_incomplete, clock, None, each.place))
    ends = [version.since for version in found[1:]] + [None]
    return [replace(of, until=end) for of, end in zip(found, ends, strict=True)]


def _filled(change: Change, row: dict[str, Any] | None, options: Options) -> dict[str, Any]:
    """What a row holds behind a change: of what this one does not say, what it held before."""
    values = dict(zip(ATTRIBUTES, change.values, strict=True))
    if change.kind != "update" or row is None:
        return values
    for name, value in values.items():
        if (value is None and name in options.ignore_null_updates) or (
            value == LEFT_OUT and name in options.left_out
        ):
            values[name] = row[name]
    return values
