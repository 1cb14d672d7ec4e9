"""The benchmark of the dashboard's pages, once: all of it real, its figures of no use.

Fails when `make bench-dashboard` does not run to its end on the demo's lake.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.report.dashboard_results import read_dashboard
from tests.python.conftest import Stack
from tests.python.programs import ran
from tests.python.stack.conftest import DemoRun

pytest.importorskip(
    "streamlit", reason="no Streamlit: `make test-dashboard` installs it first"
)


def test_each_page_that_has_tables_is_measured(
    stack: Stack, demo: DemoRun, tmp_path: Path
) -> None:
    file = tmp_path / "dashboard.json"
    command = [sys.executable, "-m", "bench.dashboard", "--times", "2"]
    done = ran([*command, "--results", str(file)], env=stack.env, timeout=600)

    # Beside other tests a page may take longer than it should.
    assert done.returncode == 0 or "longer than 1 s" in done.stderr, done.stderr
    pages = {page.name: page for page in read_dashboard(file).pages}
    assert {"overview", "rentals", "smoothies", "pipeline"} <= set(pages)
    for page in pages.values():
        assert page.queries
        assert page.rows
        for seconds in (page.look, page.asked, page.shown, page.again):
            assert len(seconds) == 2
            assert all(each > 0 for each in seconds)
    assert pages["rentals"].missing == 0
    assert "Streamlit" not in done.stderr
