"""The benchmark of the dashboard's pages, once: all of it real, its figures of no use.

Fails when `make bench-dashboard` does not run to its end on the demo's lake.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.dashboard import BENCHMARK, WHOLE
from bench.report.results import number_of
from tests.python.conftest import Stack
from tests.python.programs import ran
from tests.python.stack.conftest import DemoRun

pytest.importorskip("streamlit", reason="no Streamlit: `make test-dashboard` installs it first")


def test_each_page_that_has_tables_is_measured(stack: Stack, demo: DemoRun, tmp_path: Path) -> None:
    file = tmp_path / "dashboard.json"
    command = [sys.executable, "-m", "bench.dashboard", "--times", "2"]
    done = ran([*command, "--results", str(file)], env=stack.env, timeout=600)

    # Beside other tests a page may take longer than it should.
    assert done.returncode == 0 or "more than 1" in done.stderr, done.stderr
    results = BENCHMARK.read(file)
    table, said = results.table("dashboard"), str(results.parts["dashboard"][1])
    assert {"overview", "rentals", "smoothies", "pipeline"} <= set(table.column("page"))
    seconds = ("a look, s", "a look and all queries, s", WHOLE, "the same page again, s")
    for heading in ("queries", "rows of them", *seconds):
        assert all(number_of(cell) > 0 for cell in table.column(heading))
    assert said.startswith("Median / slowest of 2 times")
    assert "of `rentals`" not in said
    assert "Streamlit" not in done.stderr
