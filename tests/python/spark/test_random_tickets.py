"""Facts of ticket sales and listings that grow are those that a full refresh makes.

Fails when after random changes of seven tables a fact differs from a full refresh, or is written
where it stays.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.spark.lake_steps import do_steps
from tests.python.spark.random_tickets import Trial

QUICK_ROUNDS = 4
ROUNDS_OF_A_LAKE = 6


@pytest.mark.nightly
def test_facts_of_captured_tables_grow_to_what_a_full_refresh_makes(
    home: Home, tmp_path: Path
) -> None:
    """``ROUNDS=60`` does more; ``SEED`` is that of the first lake."""
    left = int(os.environ.get("ROUNDS", QUICK_ROUNDS))
    seed = int(os.environ.get("SEED", "1"))
    while left > 0:
        count = min(left, ROUNDS_OF_A_LAKE)
        print(f"seed {seed}: {count} rounds")
        trial = Trial(seed)
        trial.rounds(count)

        results = do_steps(tmp_path / str(seed), trial.steps)

        for at in trial.must_succeed:
            done = results[at]
            assert done["success"], f"seed {seed}, step {at}: {done['said']}"
        for at, number in trial.differences.items():
            assert results[at] == [], f"seed {seed}, round {number}, step {at}"
        assert all(int(results[at][0][0]) > 0 for at in trial.counts)
        assert results[trial.written] == [["0"]]
        left, seed = left - count, seed + 1
