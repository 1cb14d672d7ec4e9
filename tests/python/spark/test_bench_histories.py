"""The benchmark of captured histories, small: all of it real, its figures of no use.

Fails when `make bench-histories` does not run to its end, or what it builds is not what it sent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.report.histories_results import read_results
from tests.python.programs import ran


@pytest.mark.long
def test_increments_refreshes_and_what_comes_late_are_measured(tmp_path: Path) -> None:
    folder = tmp_path / "a bench"
    done = ran(
        [
            *(sys.executable, "-m", "bench.histories"),
            "--quick",
            "--folder",
            str(folder),
        ],
        timeout=1100,
    )

    assert done.returncode == 0, done.stderr
    results = read_results(folder / "quick-histories.json")
    for history in results.histories:
        for step in [*history.steps, *history.others[:-1]]:
            assert 0 < step.find_seconds < step.seconds
            assert 0 < step.write_seconds < step.seconds
        (by_copies,), (by_deletes,) = map(history.of, results.kinds)
        files = [
            step.tables["intermediate.int_pagila__address_history"].delete_files_written
            for step in (by_copies, by_deletes)
        ]
        assert files[0] == 0 < files[1]
    assert [file.name for file in folder.iterdir()] == ["quick-histories.json"]
