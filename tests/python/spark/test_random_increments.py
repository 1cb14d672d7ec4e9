"""Random rounds of increments end as a full refresh: see ``random_increments``.

Fails when after random loads, selections and kills a mart differs from a full refresh.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.spark.lake_steps import do_steps
from tests.python.spark.random_increments import Trial

QUICK_ROUNDS = 5
ROUNDS_OF_A_LAKE = 5
LONG_SECONDS = 600


def assert_rounds_equal_full_refreshes(folder: Path, seed: int, count: int) -> None:
    print(f"seed {seed}: {count} rounds")
    trial = Trial(seed)
    trial.rounds(count)

    results = do_steps(folder, trial.steps)

    for at in trial.must_succeed:
        done = results[at]
        assert done["success"], f"seed {seed}, step {at}: {done['said']}"
    for at, number in trial.differences.items():
        assert results[at] == [], f"seed {seed}, round {number}, step {at}"


@pytest.mark.nightly
def test_random_rounds_equal_full_refreshes(home: Home, tmp_path: Path) -> None:
    """``ROUNDS=200`` does more; ``SEED`` is that of the first lake."""
    left = int(os.environ.get("ROUNDS", QUICK_ROUNDS))
    seed = int(os.environ.get("SEED", "1"))
    while left > 0:
        count = min(left, ROUNDS_OF_A_LAKE)
        assert_rounds_equal_full_refreshes(tmp_path / str(seed), seed, count)
        left, seed = left - count, seed + 1


@pytest.mark.long
def test_ten_minutes_of_random_rounds_equal_full_refreshes(
    home: Home, tmp_path: Path
) -> None:
    first = int(time.time())
    end, seed = time.monotonic() + LONG_SECONDS, first
    while time.monotonic() < end:
        folder = tmp_path / str(seed - first)
        assert_rounds_equal_full_refreshes(folder, seed, ROUNDS_OF_A_LAKE)
        seed += 1
