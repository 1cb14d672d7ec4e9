"""Orders of writers' steps on real tables, with requests that a real catalog gets late or twice.

Fails when on a real catalog, in some order of writers' steps, a record is lost or doubled, or a
commit id is.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import pytest

from spark_ingest.commits.committed import CommitKind
from tests.python.interleavings.schedule import (
    ONCE,
    Decisions,
    Fate,
    Schedule,
    by_chance,
    every_order,
    usual,
)
from tests.python.spark.lakes import Lake, with_table
from tests.python.spark.turns import Turns

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.nightly
# The same ones each night, but for those who ask for others.
SEED = int(os.environ.get("SEED") or 1)
Program = Callable[[Turns], None]
Programs = Mapping[str, Program]
STREAMS: Programs = {"first": Turns.stream, "second": Turns.stream}
BESIDE: Programs = {"stream": Turns.stream, "replay": Turns.replay}
KINDS: Mapping[Program, CommitKind] = {
    Turns.replay: CommitKind.REPLAY,
    Turns.backfill: CommitKind.BACKFILL,
}
ALL: Programs = {**STREAMS, "replay": Turns.replay, "backfill": Turns.backfill}
# Orders that fail where rules are taken out together, with the place of each disturbance.
POINTED: list[tuple[Programs, Mapping[int, int]]] = [
    # A replay commits before `unstage`: that goes back to where the branch left main, and
    # publishing compares the id.
    (BESIDE, {14: 1, 15: 1}),
    # A publish is late, and comes when its writer has started over and read its position.
    (STREAMS, {11: 4, 19: 2}),
    # It comes when a second writer has taken the table and read its position.
    (STREAMS, {11: 3, 12: 1, 18: 2}),
]
_NUMBERS = itertools.count(1)


@pytest.fixture
def lake(request: pytest.FixtureRequest) -> Lake:
    made: Lake = request.getfixturevalue(request.param)
    return made


every_catalog = pytest.mark.parametrize("lake", ["jdbc", "rest"], indirect=True)


def attempt(lake: Lake, programs: Programs, write: str, decisions: Decisions) -> None:
    """Run programs by these decisions, then each again with nobody in its way."""
    beside = [run for run in programs.values() if run in KINDS]
    # Nothing repeats what a database's driver sends.
    schedule = Schedule(decisions, ONCE if lake.gate is None else list(Fate))
    turns = Turns(with_table(lake, f"order {next(_NUMBERS)}"), schedule, write == "files")
    with turns.at_work():
        schedule.run({name: partial(run, turns) for name, run in programs.items()})
        schedule.is_quiet = True
        turns.stream()
        for run in beside:
            run(turns)
    faults = turns.faults(*(KINDS[run] for run in beside))
    steps = "\n".join(f"{who}: {what}" for who, what in schedule.log)
    unusual = {at: chosen for at, chosen in enumerate(decisions.taken) if chosen}
    assert faults == [], f"decisions {unusual}\n{steps}"


@every_catalog
@pytest.mark.parametrize(
    ("programs", "write"),
    [(STREAMS, "rows"), (STREAMS, "files"), (BESIDE, "files")],
    ids=["streams-rows", "streams-files", "beside-files"],
)
def test_every_order_with_one_disturbance(lake: Lake, programs: Programs, write: str) -> None:
    count = sum(1 for _ in every_order(partial(attempt, lake, programs, write), 1))
    print(f"{count} orders")
    assert count > 40


@every_catalog
@pytest.mark.parametrize(
    ("programs", "unusual"), POINTED, ids=["numbered", "started-over", "taken-over"]
)
def test_orders_that_several_rules_stand_against(
    lake: Lake, programs: Programs, unusual: Mapping[int, int]
) -> None:
    prescribed = [unusual.get(at, 0) for at in range(max(unusual) + 1)]
    attempt(lake, programs, "rows", Decisions(prescribed, usual))


@every_catalog
@pytest.mark.parametrize(
    ("programs", "write"),
    [(STREAMS, "files"), (BESIDE, "rows"), (ALL, "files")],
    ids=["streams-files", "beside-rows", "all-files"],
)
def test_random_orders(lake: Lake, programs: Programs, write: str) -> None:
    print(f"SEED={SEED}")
    for seed in range(SEED, SEED + 10):
        attempt(lake, programs, write, Decisions((), by_chance(seed)))
