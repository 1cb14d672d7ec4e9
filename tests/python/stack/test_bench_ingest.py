"""The ingest benchmark, small: real broker, real engine, a peer that loses records.

Fails when `make bench` does not run to its end, or misses that its peer loses records.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.python.programs import ran

RECORDS = 20_000


@pytest.mark.long
def test_the_benchmark_measures_us_and_the_careless_job(tmp_path: Path) -> None:
    folder = tmp_path / "a bench"
    command = [sys.executable, "-m", "bench.ingest", "--anyway", "--repeats", "1"]
    command += ["--only", "millrace", "--only", "careless", "--records", str(RECORDS)]
    done = ran([*command, "--folder", str(folder)], timeout=900)
    assert done.returncode == 0, done.stderr
    contest = json.loads((folder / "ingest-part.json").read_text())["contest"]
    rows = {row["name"]: row for row in contest["rows"]}
    ours, careless = rows["millrace"], rows["careless spark job"]
    assert contest["load"]["records"] == RECORDS
    assert ours["loses"] == "nothing"
    assert "rows of nulls" in careless["loses"]
    assert "field channel" in careless["loses"]
    for row in rows.values():
        assert row["records_per_second"] > 0
        assert row["cpu_seconds_per_million"] > 0
        assert row["peak_rss_mb"] > 200
    # Its sandbox is gone.
    assert [path.name for path in folder.iterdir()] == ["ingest-part.json"]
