"""The benchmark of facts by keys: counts, limits and output."""

from __future__ import annotations

import pytest

from bench.facts_by_keys import BENCHMARK, Fact, results_of, sizes_of
from bench.increments.table_use import TableUse
from bench.increments.worker import Counted
from bench.report.page import table_lines
from bench.report.results import Results
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about

pytestmark = pytest.mark.unit


def run(seconds: float) -> Counted:
    mart = TableUse(
        files_read=3,
        bytes_read=3 * 2**20,
        files_written=4,
        delete_files_written=1,
        bytes_written=2**20,
    )
    return Counted(seconds, {}, 0.5, {"marts.a": mart}, [])


def results(refreshes: list[float], increments: list[float], rows: int = 1_000_000) -> Results:
    fact = Fact(rows, refreshes, {"sale": [run(each) for each in increments]})
    return results_of([fact], 100, about("facts_by_keys"))


def test_an_increment_is_compared_with_the_full_refresh_of_its_round() -> None:
    # The machine was slow in the second round, for both.
    (line,) = table_lines(results([10.0, 40.0, 10.0], [5.0, 24.0, 7.0]).table("facts_by_keys"))[2:]

    cells = line.strip("| ").split(" | ")
    assert cells[2:5] == ["10.0", "7.0 (5.0 to 24.0)", "0.60 (0.50 to 0.70)"]
    # Files opened, MiB of them, files written with those of deletes, MiB written.
    assert cells[5:] == ["3", "3.0", "5", "1.0"]


@pytest.mark.parametrize(
    ("rows", "seconds", "within"),
    [(1_000_000, 10.0, True), (1_000_000, 10.1, False), (999_000, 20.0, True)],
)
def test_a_full_refresh_is_the_limit_of_large_facts(
    rows: int, seconds: float, within: bool
) -> None:
    assert (BENCHMARK.beyond(results([10.0], [seconds], rows)) == []) is within


@pytest.mark.parametrize(
    ("sizes", "changes"), [("1500", 10), ("7919000", 10), ("4000", 1001), ("4000", 0)]
)
def test_sizes_that_do_not_change_another_row_each_time_are_refused(
    sizes: str, changes: int
) -> None:
    with pytest.raises(ConfigurationError, match=r"--sizes|--changes"):
        sizes_of(sizes, changes)
