"""The ingest benchmark, small: real broker, real engine, a peer that loses records.

Fails when `make bench` does not run to its end, or misses that its peer loses records.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.ingest.__main__ import BENCHMARK
from bench.report.results import number_of
from tests.python.programs import ran

RECORDS = 20_000


@pytest.mark.long
def test_the_benchmark_measures_us_and_the_careless_job(tmp_path: Path) -> None:
    folder = tmp_path / "a bench"
    command = [sys.executable, "-m", "bench.ingest", "--anyway", "--repeats", "1"]
    command += ["--only", "millrace", "--only", "careless", "--records", str(RECORDS)]
    done = ran([*command, "--folder", str(folder)], timeout=900)
    assert done.returncode == 0, done.stderr
    results = BENCHMARK.read(folder / "ingest-part.json")
    table = results.table("ingest")
    loses = dict(zip(table.column("system"), table.column("loses"), strict=True))
    careless = str(loses["careless spark job"])
    assert str(results.parts["ingest_machine"][1]).startswith(f"{RECORDS:,} records")
    assert loses["**millrace**"] == "nothing"
    assert "rows of nulls" in careless
    assert "field channel" in careless
    for heading, least in (("records/s", 0), ("CPU s per million", 0), ("peak RSS, MiB", 200)):
        assert all(number_of(cell) > least for cell in table.column(heading))
    # Its sandbox is gone.
    assert [path.name for path in folder.iterdir()] == ["ingest-part.json"]
