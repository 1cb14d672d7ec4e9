"""The benchmark of a captured database, short: all of it real, its figures of no use.

Fails when `make bench-cdc` does not run to its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.report.capture_results import read_capture
from tests.python.programs import ran


@pytest.mark.long
def test_changes_are_followed_to_bronze_live_view_and_current_state(
    tmp_path: Path,
) -> None:
    folder, file = tmp_path / "a bench", tmp_path / "capture.json"
    command = [sys.executable, "-m", "bench.capture", "--seconds", "20"]
    command += ["--rate", "50", "--burst", "500", "--build-every", "10"]
    done = ran(
        [*command, "--folder", str(folder), "--results", str(file)], timeout=1100
    )

    assert done.returncode == 0, done.stderr
    capture = read_capture(file)
    # A rename is two changes of the log, so there are somewhat more than were asked for.
    assert 900 < capture.steady.changes < 1500
    steady = capture.steady
    assert 0 < steady.bronze.p50 < steady.live.p50 < steady.current.p50
    assert [stage.name for stage in capture.burst] == [
        "PostgreSQL",
        "Kafka",
        "bronze",
        "current state",
    ]
    assert not any(folder.iterdir())
