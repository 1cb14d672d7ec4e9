"""Histories of random logs, held against the rules, by increments and by full refreshes.

Fails when a history of a random log is not what the rules of decision 0012 say, or differs from
a full refresh.
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import pytest

from tests.python.histories.cases import PARTITIONS, Log, options_of
from tests.python.histories.lake import Change, Lake
from tests.python.histories.options import ATTRIBUTES, Options
from tests.python.histories.rules import NOWHERE, Version, is_unplaced, versions

TABLES = int(os.environ.get("TABLES", "50"))
ROWS = 40
ROUNDS = 4
FIRST_SEED = int(os.environ.get("SEED", "1"))


def expected(found: list[Version], options: Options) -> list[tuple[Any, ...]]:
    """Versions as columns of a history."""
    rows = []
    for at, of in enumerate(found):
        is_last = at + 1 == len(found) or found[at + 1].row != of.row
        rows.append(
            (
                *options.key(of.row),
                *of.values,
                of.is_deleted,
                of.is_incomplete,
                is_last,
                of.since,
                of.until,
                _position(of, options),
            )
        )
    return sorted(rows, key=in_order)


def ruled(rows: list[tuple[Any, ...]], options: Options) -> list[tuple[Any, ...]]:
    """The columns of a history that the rules decide, in the order of its versions."""
    end = 1 + len(options.key_types) + len(ATTRIBUTES) + 6
    return sorted((row[1:end] for row in rows), key=in_order)


def in_order(row: tuple[Any, ...]) -> tuple[str, str]:
    """By key and position."""
    return str(row[: -len(ATTRIBUTES) - 6]), row[-1]


def _position(version: Version, options: Options) -> str:
    if version.place == NOWHERE:
        return ""
    log, position, what = version.place
    return options.position_text(log, position) + what


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + TABLES))
def test_a_history_is_what_the_rules_say_however_it_was_built(seed: int) -> None:
    random = Random(seed)
    options = options_of(random)
    # Of a row in several partitions a clock that ran backwards looks like a restart.
    is_scattered = not options.looks_for_restarts and random.random() < 0.5
    log = Log(random, options, ROWS, is_scattered)
    lake, read = Lake(options), list[Change]()
    for number in range(ROUNDS):
        for _ in range(random.choice([40, 120])):
            log.transaction()
        for _ in range(random.choice([1, 2])):
            commit = []
            for partition in range(PARTITIONS):
                count = 10_000 if number == ROUNDS - 1 else random.choice([0, 20, 10_000])
                commit += log.deliver(partition, count)
            lake.commit(commit)
            read += [replace(change, commit_id=lake.newest) for change in commit]
        if random.random() < 0.2 and number:
            lake.run()
        lake.build()
        by_rules = expected(versions(read, options), options)
        assert ruled(lake.versions(), options) == by_rules, (seed, number, options)
    assert lake.refreshed() == lake.versions(), (seed, options)
    unplaced = {change.kind == "truncate" for change in read if is_unplaced(change)}
    warned = {"TRUNCATEs" in warning for warning in lake.warnings}
    assert warned == unplaced, (seed, options)


def test_thousands_of_truncates_hide_no_late_change() -> None:
    lake = Lake(Options(form="envelope", truncates=True))
    at = datetime.fromisoformat("2026-01-01")

    def change(row: int | None, kind: str, position: int, offset: int) -> Change:
        values = ("a", kind, 1) if row is not None else (None,) * len(ATTRIBUTES)
        return Change(row, kind, values, position, at, at, 0, offset)

    lake.commit([change(0, "create", 100, 0), change(1, "create", 110, 1)])
    lake.build()
    truncates = [change(None, "truncate", 1000 + n, 2 + n) for n in range(2100)]
    lake.commit([*truncates, change(0, "create", 50, 3000)])

    lake.build()

    assert lake.versions() == lake.refreshed()
    assert [row[0] for row in lake.versions() if "50c" in row[0]]
