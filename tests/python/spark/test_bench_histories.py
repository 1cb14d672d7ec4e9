"""The benchmark of captured histories, small: all of it real, its figures of no use.

Fails when `make bench-histories` does not run to its end, or what it builds is not what it sent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.histories.__main__ import BENCHMARK
from bench.report.results import number_of
from tests.python.programs import ran


@pytest.mark.long
def test_increments_refreshes_and_what_comes_late_are_measured(tmp_path: Path) -> None:
    folder = tmp_path / "a bench"
    done = ran(
        [*(sys.executable, "-m", "bench.histories"), "--quick", "--folder", str(folder)],
        timeout=1100,
    )

    assert done.returncode == 0, done.stderr
    results = BENCHMARK.read(folder / "quick-histories.json")
    usual, disturbed = results.table("histories"), results.table("histories_disturbed")
    for table, whole, rows in (
        (usual, "increment, s", len(usual.rows)),
        (disturbed, "seconds", len(disturbed.rows) - 1),
    ):
        columns = (whole, "what is new, s", "write, s")
        numbers = [map(number_of, table.column(each)[:rows]) for each in columns]
        for seconds, find_seconds, write_seconds in zip(*numbers, strict=True):
            assert 0 < find_seconds < seconds
            assert 0 < write_seconds < seconds
    files, mib = (
        [number_of(cell) for cell in usual.column(each)]
        for each in ("files written", "MiB written")
    )
    for by_copies, by_deletes in ((0, 1), (2, 3)):
        # One more, which says what is deleted, and less in all.
        assert files[by_copies] < files[by_deletes]
        assert mib[by_copies] > mib[by_deletes]
    assert [file.name for file in folder.iterdir()] == ["quick-histories.json"]
