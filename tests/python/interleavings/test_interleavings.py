"""Every order in which two writers of a bronze table take their steps, and what gets lost.

Fails when in some order of two writers' steps a commit id is given twice, a record is lost or
duplicated, or a quarantine row of the other writer is deleted.
"""

from __future__ import annotations

import os
import random
from functools import partial

import pytest

from tests.python.interleavings.lake import Lake
from tests.python.interleavings.schedule import Decisions, Schedule, by_chance, every_order
from tests.python.interleavings.writers import Programs, backfill, maintain, replay, stream

PAIRS: dict[str, Programs] = {
    "stream-takeover": {"first": stream, "second": stream},
    "stream-replay": {"stream": stream, "replay": replay},
    "stream-backfill": {"stream": stream, "backfill": backfill},
    "stream-maintenance": {"stream": stream, "maintenance": maintain},
    "replay-replay": {"one": replay, "other": replay},
}
# How a stream writes: by files that it publishes, or by Spark's writer, which stages them.
WRITES = {"files": [True], "rows": [False], "both": [False, True]}
# A REST catalog refuses less: what it lets through is what can go wrong.
CATALOGS = {"rest": False, "jdbc": True}
SEED = int(os.environ.get("SEED") or random.randrange(10**6))
# Every change runs the pairs that the streams of all users are in; these come at night.
RARE = {"stream-backfill", "stream-maintenance", "replay-replay"}
by_pair = pytest.mark.parametrize("pair", PAIRS)
by_catalog = pytest.mark.parametrize("catalog", CATALOGS)
by_write = pytest.mark.parametrize(
    "write", ["files", "rows", pytest.param("both", marks=pytest.mark.nightly)]
)


def attempt(pair: str, catalog: str, write: str, decisions: Decisions) -> None:
    """Run a pair of programs by these decisions, then a stream that puts things in order."""
    schedule = Schedule(decisions)
    lake = Lake(schedule, compares_all=CATALOGS[catalog], by_files=WRITES[write])
    with lake.at_work():
        if "stream" not in pair:
            schedule.is_quiet = True
            stream(lake)
            schedule.is_quiet = False
        schedule.run({name: partial(work, lake) for name, work in PAIRS[pair].items()})
        schedule.is_quiet = True
        stream(lake)
    steps = "\n".join(f"{who}: {what}" for who, what in schedule.log)
    unusual = {at: chosen for at, chosen in enumerate(decisions.taken) if chosen}
    assert lake.faults() == [], f"decisions {unusual}\n{steps}"


@pytest.mark.parametrize(
    "pair",
    [pytest.param(pair, marks=[pytest.mark.nightly] if pair in RARE else []) for pair in PAIRS],
)
@pytest.mark.parametrize("catalog", ["rest", pytest.param("jdbc", marks=pytest.mark.nightly)])
@by_write
def test_every_order_with_two_disturbances(pair: str, catalog: str, write: str) -> None:
    count = sum(1 for _ in every_order(partial(attempt, pair, catalog, write), 2))
    print(f"{count} orders")
    assert count > 500


@by_pair
@by_catalog
@by_write
@pytest.mark.parametrize("count", [200, pytest.param(2000, marks=pytest.mark.nightly)])
def test_random_orders(pair: str, catalog: str, write: str, count: int) -> None:
    print(f"SEED={SEED}")
    for seed in range(SEED, SEED + count):
        attempt(pair, catalog, write, Decisions((), by_chance(seed)))
