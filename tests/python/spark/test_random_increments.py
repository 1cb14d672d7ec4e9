"""Random rounds of increments end as a full refresh: see ``random_increments``.

Fails when after random loads, selections and kills a mart differs from a full refresh.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.spark.lake_steps import do_steps, lakes_for, random_lakes
from tests.python.spark.random_increments import Trial

ROUNDS = 5
LONG_SECONDS = 600


def assert_rounds_equal_full_refreshes(folder: Path, seed: int, count: int) -> None:
    print(f"seed {seed}: {count} rounds")
    trial = Trial(seed)
    trial.rounds(count)

    results = do_steps(folder, trial.steps)

    trial.assert_equal(results)


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "count"), random_lakes(ROUNDS))
def test_random_rounds_equal_full_refreshes(
    home: Home, tmp_path: Path, seed: int, count: int
) -> None:
    assert_rounds_equal_full_refreshes(tmp_path, seed, count)


@pytest.mark.long
def test_ten_minutes_of_random_rounds_equal_full_refreshes(home: Home, tmp_path: Path) -> None:
    for folder, seed in lakes_for(LONG_SECONDS, tmp_path):
        assert_rounds_equal_full_refreshes(folder, seed, ROUNDS)
