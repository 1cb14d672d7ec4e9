"""Histories of captured tables end as a full refresh, and as the database's log.

Fails when after random transactions a history differs from a full refresh or the log, or its live
view from the next build.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import do_steps, lakes_for
from tests.python.spark.random_captures import Trial

QUICK_ROUNDS = 4
ROUNDS_OF_A_LAKE = 8
LONG_SECONDS = 600


def project_with_truncates(into: Path) -> Path:
    """A copy of the project, in which the museum's connector sends truncates, too."""
    copy_project(into)
    sources = into / "models" / "staging" / "moma" / "_moma__sources.yml"
    declared = "key: [artist_id]\n"
    text = sources.read_text()
    assert text.count(declared) == 1
    indent = " " * 16
    sources.write_text(
        text.replace(declared, f"{declared}{indent}truncates_when: \"records.__op = 't'\"\n")
    )
    return into


def assert_history_is_the_log(folder: Path, seed: int, count: int) -> None:
    print(f"seed {seed}: {count} rounds")
    trial = Trial(seed)
    trial.rounds(count)

    results = do_steps(folder, trial.steps, project_with_truncates(folder / "project"))

    trial.assert_equal(results)
    for number, steps in enumerate(trial.alike):
        before, held, behind = (results[at] for at in steps)
        assert before == held == behind, f"seed {seed}, round {number}"
    assert results[trial.emptied] == [], f"seed {seed}"
    assert results[trial.history] == trial.expected(), f"seed {seed}"


@pytest.mark.nightly
def test_random_transactions_are_held_as_the_log_shows(home: Home, tmp_path: Path) -> None:
    """``ROUNDS=200`` does more; ``SEED`` is that of the first lake."""
    left = int(os.environ.get("ROUNDS", QUICK_ROUNDS))
    seed = int(os.environ.get("SEED", "1"))
    while left > 0:
        count = min(left, ROUNDS_OF_A_LAKE)
        assert_history_is_the_log(tmp_path / str(seed), seed, count)
        left, seed = left - count, seed + 1


@pytest.mark.long
def test_ten_minutes_of_random_transactions_are_held_as_the_log_shows(
    home: Home, tmp_path: Path
) -> None:
    for folder, seed in lakes_for(LONG_SECONDS, tmp_path):
        assert_history_is_the_log(folder, seed, ROUNDS_OF_A_LAKE)
