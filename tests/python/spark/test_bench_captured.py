"""The benchmarks of histories and of facts by keys, small: all of it real, its figures of no use.

Fails when a benchmark does not run to its end, or what it builds is not what it sent.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench import facts_by_keys
from bench.histories.__main__ import BENCHMARK
from bench.report.results import number_of
from tests.python.programs import ran


def bench(name: str, folder: Path) -> None:
    done = ran(
        [*(sys.executable, "-m", f"bench.{name}"), "--quick", "--folder", str(folder)],
        timeout=1100,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_increments_refreshes_and_what_comes_late_are_measured(tmp_path: Path) -> None:
    folder = tmp_path / "a bench"
    bench("histories", folder)

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


@pytest.mark.long
def test_increments_of_a_fact_are_measured_beside_its_refreshes(tmp_path: Path) -> None:
    """Fails when a change of users, which affects no earlier sale, writes the fact."""
    folder = tmp_path / "a bench"
    bench("facts_by_keys", folder)

    results = facts_by_keys.BENCHMARK.read(folder / "quick-facts-by-keys.json")
    measured = results.table("facts_by_keys")
    assert measured.column("updated rows of") == ["`sale`", "`user`"] * 2
    assert all(number_of(cell) > 0 for cell in measured.column(facts_by_keys.RATIO))
    # Of users the read points and the record of the run, of sales the fact and its deletes, too.
    assert [number_of(cell) for cell in measured.column("files written")] == [4, 2] * 2
