"""The benchmark of a captured database, short: all of it real, its figures of no use.

Fails when `make bench-cdc` does not run to its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.capture.__main__ import BENCHMARK
from bench.report.results import number_of
from tests.python.programs import ran


@pytest.mark.long
def test_changes_are_followed_to_bronze_live_view_and_current_state(tmp_path: Path) -> None:
    folder, file = tmp_path / "a bench", tmp_path / "capture.json"
    command = [sys.executable, "-m", "bench.capture", "--seconds", "20"]
    command += ["--rate", "50", "--burst", "500"]
    done = ran([*command, "--folder", str(folder), "--results", str(file)], timeout=1100)

    assert done.returncode == 0, done.stderr
    results = BENCHMARK.read(file)
    changes, _, _ = str(results.parts["capture"][1]).partition(" changes at ")
    # A rename is two changes of the log, so there are somewhat more than were asked for.
    assert 900 < int(changes.replace(",", "")) < 1500
    bronze, live, current = map(number_of, results.table("capture").column("p50, s"))
    assert 0 < bronze < live < current
    assert results.table("capture_burst").column("up to") == [
        "PostgreSQL",
        "Kafka",
        "bronze",
        "current state",
    ]
    assert not any(folder.iterdir())
