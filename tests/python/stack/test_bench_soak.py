"""The soak, short: real broker, a stream that commits every second, maintenance beside it.

Fails when a stream with maintenance beside it grows without bound, or loses a record.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.report.soak_results import read_soak
from tests.python.programs import ran


@pytest.mark.long
def test_a_soak_stays_bounded_and_verified(tmp_path: Path) -> None:
    folder, file = tmp_path / "a bench", tmp_path / "soak.json"
    command = [sys.executable, "-m", "bench.soak", "--minutes", "3", "--every", "1s"]
    command += ["--maintain-every", "20s", "--keep", "20s"]
    done = ran([*command, "--folder", str(folder), "--results", str(file)], timeout=900)
    assert done.returncode == 0, done.stderr
    soak = read_soak(file)
    assert soak.verified
    assert soak.rounds >= 3
    # Compaction moves the table under its batches, and none is read again for that.
    assert soak.restarts == 0
    assert soak.commits > 30
    thirds = [third for third in soak.series["snapshots"].thirds if third]
    assert max(most for _, most in thirds) < soak.commits
    assert not any(folder.iterdir())
