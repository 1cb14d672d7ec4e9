"""Facts of ticket sales and listings that grow are those that a full refresh makes.

Fails when after random changes of seven tables a fact differs from a full refresh, or is written
where it stays.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.spark.lake_steps import do_steps, random_lakes
from tests.python.spark.random_tickets import Trial

ROUNDS = 4


@pytest.mark.nightly
@pytest.mark.parametrize(("seed", "count"), random_lakes(ROUNDS))
def test_facts_of_captured_tables_grow_to_what_a_full_refresh_makes(
    home: Home, tmp_path: Path, seed: int, count: int
) -> None:
    trial = Trial(seed)
    trial.rounds(count)

    results = do_steps(tmp_path, trial.steps)

    trial.assert_equal(results)
    assert all(int(results[at][0][0]) > 0 for at in trial.counts)
    before, after = trial.written
    assert results[after] == results[before]
