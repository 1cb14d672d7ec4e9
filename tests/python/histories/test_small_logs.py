"""Histories of small logs that random ones seldom make, each as the database has it.

Fails when re-delivery, a snapshot, a clock or a key that another row takes makes another version,
or a stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.python.histories.lake import Change, Lake
from tests.python.histories.options import ATTRIBUTES, LEFT_OUT, Options
from tests.python.histories.rules import versions
from tests.python.histories.test_histories import expected, ruled

_BEGIN = datetime.fromisoformat("2026-01-01")
_NOTHING = (None,) * len(ATTRIBUTES)
Batch = list[Change]
# Name, seconds from and to, whether deleted.
Expected = list[tuple[int, Any, float, float | None, bool]]


def change(
    kind: str,
    position: int | None,
    seconds: float,
    name: str | None = None,
    row: int | None = 0,
    partition: int = 0,
    sent: float | None = None,
) -> Change:
    """A change that was committed so many seconds after the beginning."""
    return Change(
        row,
        kind,
        (name, "n", 1) if name is not None else _NOTHING,
        position,
        committed_at=_at(seconds),
        sent_at=_at(seconds if sent is None else sent),
        partition=partition,
    )


def built(options: Options, batches: Sequence[Batch]) -> list[tuple[Any, ...]]:
    """The history after an increment for each batch, which a full refresh and the rules make."""
    lake, read = Lake(options), list[Change]()
    offsets: dict[int, int] = {}
    for batch in batches:
        commit = []
        for each in batch:
            offset = offsets.get(each.partition, 0)
            offsets[each.partition] = offset + 1
            commit.append(replace(each, offset=offset, commit_id=lake.newest + 1))
        lake.commit(commit)
        read += commit
        lake.build()
        assert lake.versions() == lake.refreshed()
        by_rules = expected(versions(read, options), options)
        assert ruled(lake.versions(), options) == by_rules
    return by_rules


def names(rows: Sequence[tuple[Any, ...]]) -> Expected:
    """Row, name, seconds of beginning and end, and whether it is deleted."""
    found = []
    for row in rows:
        since, until = row[-3], row[-2]
        found.append(
            (
                row[0] + 5,
                row[1],
                (since - _BEGIN).total_seconds(),
                None if until is None else (until - _BEGIN).total_seconds(),
                row[-6],
            )
        )
    return found


def _at(seconds: float) -> datetime:
    return _BEGIN + timedelta(seconds=seconds)


SENT_AGAIN_BEHIND_A_SECOND_SNAPSHOT: list[Batch] = [
    [change("snapshot", 100, 10, "old"), change("update", 90, 11, "new")],
    [change("snapshot", 200, 20, "new"), change("update", 90, 11, "new", sent=30)],
]
COMMITTED_IN_THE_INSTANT_OF_THE_SNAPSHOT: list[Batch] = [
    [change("snapshot", 100, 10, "old"), change("update", 90, 10, "new")]
]
CREATED_ANEW_WHILE_THE_SNAPSHOT_WAS_TAKEN: list[Batch] = [
    [
        change("snapshot", 190, 18, "old"),
        change("tombstone", None, 23),
        change("create", 144, 23, "new"),
    ]
]
SENT_AGAIN_AFTER_A_CLOCK_STEPPED_BACK: list[Batch] = [
    [change("create", 10, 1, "a"), change("update", 20, 9, "b")],
    [change("update", 30, 5, "c", sent=10), change("update", 20, 9, "b", sent=11)],
]
A_TRUNCATE_READ_BEFORE_AN_OLDER_DELETE: list[Batch] = [
    [change("create", 10, 1, "a"), change("truncate", 30, 5, row=None, sent=20)],
    [change("delete", 20, 9, partition=1, sent=9)],
]


@pytest.mark.parametrize(
    ("batches", "expected_rows"),
    [
        (
            SENT_AGAIN_BEHIND_A_SECOND_SNAPSHOT,
            [(0, "old", 10, 11, False), (0, "new", 11, None, False)],
        ),
        (
            COMMITTED_IN_THE_INSTANT_OF_THE_SNAPSHOT,
            [(0, "old", 10, 10, False), (0, "new", 10, None, False)],
        ),
        (
            CREATED_ANEW_WHILE_THE_SNAPSHOT_WAS_TAKEN,
            [(0, "old", 18, 23, False), (0, "old", 23, 23, True), (0, "new", 23, None, False)],
        ),
        (
            SENT_AGAIN_AFTER_A_CLOCK_STEPPED_BACK,
            [(0, "a", 1, 9, False), (0, "b", 9, 9, False), (0, "c", 9, None, False)],
        ),
        (A_TRUNCATE_READ_BEFORE_AN_OLDER_DELETE, [(0, "a", 1, 9, False), (0, "a", 9, None, True)]),
    ],
    ids=[
        "sent again behind a second snapshot",
        "committed in the instant of the snapshot",
        "recreated while the snapshot was taken",
        "sent again after a clock stepped back",
        "a truncate read before an older delete",
    ],
)
def test_a_small_log_gives_its_versions(batches: list[Batch], expected_rows: Expected) -> None:
    options = Options(truncates=True, looks_for_restarts=True)
    whole = [[each for batch in batches for each in batch]]

    assert names(built(options, batches)) == expected_rows
    assert names(built(options, whole)) == expected_rows


@pytest.mark.parametrize("value", ["said", None])
def test_a_version_of_which_a_later_change_says_the_value_is_complete(value: str | None) -> None:
    options = Options(left_out=("name",), track=("rank",))
    unknown = change("update", 90, 1, LEFT_OUT)
    said = replace(change("update", 100, 2), values=(value, "n", 1))

    for batches in ([[unknown], [said]], [[unknown, said]]):
        version = built(options, batches)[-1]
        assert version[1] == value
        assert version[-5] is False, "is_incomplete"


def shift(rows: Sequence[str], first: int, position: int, seconds: float) -> list[Change]:
    """``set id = id + 1`` of rows that follow each other, with a deferrable key."""
    made = []
    for at, name in enumerate(rows):
        here = position + 10 * at
        made += [
            change("delete", here, seconds, name, row=first + at),
            change("tombstone", None, seconds + 1, row=first + at),
            change("create", here, seconds, name, row=first + at + 1),
        ]
    return made


def current(rows: Sequence[tuple[Any, ...]]) -> dict[int, Any]:
    """The rows that are there, with their names."""
    return {row: name for row, name, _, until, gone in names(rows) if not (until or gone)}


_ROWS = ["a", "b", "c"]
_CREATED = [change("create", 10 + at, 1, name, at) for at, name in enumerate(_ROWS)]
_SHIFTED = shift(_ROWS, 0, 100, 5)


@pytest.mark.parametrize(
    "batches",
    [
        [_CREATED + _SHIFTED],
        [_CREATED, _SHIFTED],
        # The transaction comes in two commits of ingest, cut at each place.
        *([_CREATED, _SHIFTED[:at], _SHIFTED[at:]] for at in range(1, len(_SHIFTED))),
        # Sent again, all of it or its end.
        [_CREATED, _SHIFTED, _SHIFTED],
        [_CREATED, _SHIFTED + _SHIFTED[5:]],
        [[replace(each, kind="snapshot") for each in _CREATED], _SHIFTED],
    ],
)
def test_a_row_that_takes_the_key_of_another_one_stays(batches: list[Batch]) -> None:
    options = Options(looks_for_restarts=True)

    assert current(built(options, batches)) == {1: "a", 2: "b", 3: "c"}


def test_keys_are_shifted_twice_in_a_transaction_and_again_in_the_next() -> None:
    twice = _SHIFTED + shift(_ROWS, 1, 200, 5)
    again = shift(_ROWS, 2, 300, 6)

    options = Options(looks_for_restarts=True)
    assert current(built(options, [_CREATED, twice, again])) == {3: "a", 4: "b", 5: "c"}


def test_rows_of_equal_values_take_each_others_keys() -> None:
    same = [replace(each, values=("x", "n", 1)) for each in _CREATED + _SHIFTED]

    assert current(built(Options(), [same])) == {1: "x", 2: "x", 3: "x"}


def test_what_a_transaction_creates_and_deletes_is_gone() -> None:
    made = [change("create", 10, 1, "a"), change("delete", 20, 1, "a")]
    truncated = [
        change("create", 10, 1, "a"),
        change("truncate", 15, 2, row=None),
        change("create", 20, 3, "b"),
        change("delete", 30, 3, "b"),
    ]
    freed_first = [
        change("create", 10, 1, "a"),
        change("delete", 20, 2, "a"),
        change("create", 30, 2, "b"),
        change("delete", 40, 3, "b"),
    ]

    options = Options(truncates=True)
    for log in (made, truncated, freed_first):
        assert current(built(options, [log])) == {}
        assert current(built(options, [[each] for each in log])) == {}


def test_a_snapshot_in_the_second_of_a_create_and_a_delete_keeps_no_row() -> None:
    """MariaDB's log has whole seconds: three transactions look like one."""
    made = [change("create", 10, 1, "a"), change("snapshot", 30, 1, "a")]
    gone = [change("delete", 50, 1, "a")]
    # All of the row is read again, for this lies before what was seen.
    late = [change("update", 20, 1, "b")]

    options = Options(position="binlog")
    for batches in ([made + gone], [made, gone], [made, gone, late], [made + gone + late]):
        assert current(built(options, batches)) == {}
