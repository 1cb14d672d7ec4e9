"""The benchmark of publishing, once, with few rows: its figures are of no use.

Fails when `python -m bench.publish` does not run to its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.publish import BENCHMARK
from bench.report.results import number_of
from tests.python.conftest import Stack
from tests.python.programs import ran


@pytest.mark.nightly
def test_a_mart_and_its_changes_are_measured(stack: Stack, tmp_path: Path) -> None:
    file = tmp_path / "publish.json"
    done = ran(
        [sys.executable, "-m", "bench.publish", "--rows", "3000", "--results", file],
        env=stack.env,
        timeout=600,
    )

    assert done.returncode == 0, done.stderr
    sent = BENCHMARK.read(file).table("publish")
    assert sent.column("records") == [3000, 300, 3300]
    assert all(number_of(cell) > 0 for cell in sent.column("seconds"))
