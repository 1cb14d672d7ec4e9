"""What a history must be: the rules of decision 0012 in plain Python, one change after another.

It shares nothing with the macros but the form of what comes out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from tests.python.histories.lake import ATTRIBUTES, Change, Options

LEFT_OUT = "__debezium_unavailable_value"
Place = tuple[int, str]
"""Where a change lies in the order of its row: a position in the log, and what it is there."""
NOWHERE: Place = (-1, "")


@dataclass(frozen=True)
class Version:
    """What a row held from one change until the next.

    Attributes:
        key: The row.
        values: Of ``ATTRIBUTES``.
        is_deleted: The row was gone.
        is_incomplete: A value that no change ever said is null.
        since: When it begins.
        until: When it ends; none for the one that holds.
        place: Of the change that it begins with.
    """

    key: int
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
    """All versions of all rows, by key and in their order."""
    by_key: dict[int, list[Change]] = defaultdict(list)
    truncates = []
    for change in changes:
        if change.key is None:
            truncates.append(change)
        else:
            by_key[change.key].append(change)
    found = []
    for key in sorted(by_key):
        placed = _in_order(by_key[key], truncates if options.truncates else [])
        found += _versions_of(key, placed, options)
    return found


def _in_order(changes: Sequence[Change], truncates: Sequence[Change]) -> list[_Placed]:
    """The changes of one row in the order of the log, each place once, truncates among them."""
    placed = []
    for partition in {change.partition for change in changes}:
        mine = [change for change in changes if change.partition == partition]
        placed += _placed(sorted(mine, key=lambda change: change.offset))
    first = min(each.place for each in placed)
    for truncate in truncates:
        assert truncate.position is not None
        place = (truncate.position, "c")
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
    return [replace(each, at=times.get(place)) for place, each in last.items()]


def _placed(changes: Sequence[Change]) -> list[_Placed]:
    """The changes of one row in one partition, as they came, with their places."""
    placed: list[_Placed] = []
    last = NOWHERE
    snapshot: tuple[int, datetime] | None = None
    before: Change | None = None
    for change in changes:
        at: datetime | None = change.committed_at
        if change.kind == "tombstone":
            place = (last[0], f"{last[1]}t") if last != NOWHERE else NOWHERE
            if before is not None and before.is_deleted:
                at = None
        else:
            assert change.position is not None
            if change.kind == "snapshot":
                place = (change.position, "")
                here = (change.position, change.committed_at)
                snapshot = max(here, snapshot) if snapshot else here
            elif (
                snapshot
                and change.position < snapshot[0]
                and change.committed_at > snapshot[1]
            ):
                # Its transaction was open while the snapshot was taken.
                place = (snapshot[0], f"s{change.position:020d}")
            else:
                place = (change.position, "c")
            last = place
        placed.append(_Placed(change, place, at))
        before = change
    return placed


def _versions_of(
    key: int, placed: Sequence[_Placed], options: Options
) -> list[Version]:
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
                        key,
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
            held.values[at] == values[at]
            for at, name in enumerate(ATTRIBUTES)
            if name in tracked
        ):
            found[-1] = replace(held, values=values)
            continue
        found.append(
            Version(key, values, False, is_incomplete, clock, None, each.place)
        )
    ends = [version.since for version in found[1:]] + [None]
    return [replace(of, until=end) for of, end in zip(found, ends, strict=True)]


def _filled(
    change: Change, row: dict[str, Any] | None, options: Options
) -> dict[str, Any]:
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
