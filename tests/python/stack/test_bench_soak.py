"""The soak, short: real broker, a stream that commits every second, maintenance beside it.

Fails when a stream with maintenance beside it grows without bound, or loses a record.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from bench.soak import BENCHMARK
from tests.python.programs import ran


@pytest.mark.long
def test_a_soak_stays_bounded_and_verified(tmp_path: Path) -> None:
    folder, file = tmp_path / "a bench", tmp_path / "soak.json"
    command = [sys.executable, "-m", "bench.soak", "--minutes", "3", "--every", "1s"]
    command += ["--maintain-every", "20s", "--keep", "20s"]
    done = ran([*command, "--folder", str(folder), "--results", str(file)], timeout=900)
    assert done.returncode == 0, done.stderr
    results = BENCHMARK.read(file)
    said = str(results.parts["soak"][2])
    commits, rounds, restarts = (
        int(found[1].replace(",", ""))
        for word in ("commits", "rounds", "times")
        if (found := re.search(rf"([\d,]+) {word}", said))
    )
    assert "`verify` passed" in said
    assert rounds >= 3
    # Compaction moves the table under its batches, and none is read again for that.
    assert restarts == 0
    assert commits > 30
    snapshots = next(row for row in results.table("soak").rows if row[0] == "snapshots")
    assert all(third[1] < commits for third in snapshots[1:] if isinstance(third, list))
    assert not any(folder.iterdir())
