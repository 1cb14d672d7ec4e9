"""The benchmark of increments: counts, limits and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.increments.__main__ import BENCHMARK, sizes_of
from bench.increments.lake import Size
from bench.increments.results import History, Increment, results_of
from bench.increments.table_use import Scan, TableUse, use_by_table
from bench.report.page import table_lines, with_results
from bench.report.results import Results, Spread, write_kept
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about, drawn_twice, page_of

pytestmark = pytest.mark.unit

COMMIT = (
    "Received metrics report: CommitReport{tableName=lake.marts.fct_a, snapshotId=4, "
    "operation=overwrite, commitMetrics=CommitMetricsResult{totalDuration="
    "TimerResult{timeUnit=NANOSECONDS, totalDuration=PT1.1S, count=1}, "
    "addedDataFiles=CounterResult{unit=COUNT, value=2}, "
    "removedDataFiles=CounterResult{unit=COUNT, value=3}, "
    "addedDeleteFiles=CounterResult{unit=COUNT, value=7}, "
    "addedFilesSizeInBytes=CounterResult{unit=BYTES, value=500}}}\n"
)


def increment(seconds: float, bytes_read: int | None = 2**20) -> Increment:
    return Increment(
        load=0.5,
        seconds=seconds,
        models={"fct_a": 3.0},
        bytes_read=bytes_read,
        tables={"marts.fct_a": TableUse(files_read=1, bytes_read=3 * 2**20)},
    )


def history(rows: int, *seconds: float) -> History:
    return History(rows, rows / 1000, [increment(each) for each in seconds])


def results(*histories: History) -> Results:
    return results_of(histories, 10_000, 2, about("increments"))


def lines(*histories: History) -> list[str]:
    """The rows of the table of costs."""
    return table_lines(results(*histories).table("increments"))[2:]


def test_scans_and_commits_are_summed_by_table() -> None:
    scan = Scan(
        "marts.fct_a", {"ResultDataFiles": 5, "TotalDataFileSize": 100, "number of output rows": 7}
    )

    uses = use_by_table([scan, scan, Scan("bronze.b", {})], [COMMIT, "other\n", COMMIT])

    assert uses == {
        "bronze.b": TableUse(),
        "marts.fct_a": TableUse(
            files_read=10,
            bytes_read=200,
            rows_read=14,
            files_written=4,
            bytes_written=1000,
            delete_files_written=14,
        ),
    }


def test_ratios_compare_increments_of_one_round() -> None:
    # The machine was slow in the second round, for both.
    measured = results(history(1, 10, 40, 10), history(2, 11, 48, 13))

    assert measured.table("increments").rows[1][3] == Spread(least=1.1, median=1.2, most=1.3)


@pytest.mark.parametrize(("longest", "flat"), [(15.0, True), (15.1, False)])
def test_a_history_that_costs_half_more_is_not_flat(longest: float, flat: bool) -> None:
    measured = results(history(1, 10.0), history(2, 9.0), history(3, longest))

    assert (BENCHMARK.beyond(measured) == []) is flat


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    measured, file = results(history(1, 10.0), history(2, 9.0)), tmp_path / "a.json"
    write_kept(measured, file)

    assert BENCHMARK.read(file) == measured


@pytest.mark.parametrize("text", [None, '{"histories": []}', "no json"])
def test_a_file_without_results_names_the_way_to_them(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(ConfigurationError, match=r"a\.json .*make bench|a\.json .*again"):
        BENCHMARK.read(file)


def test_the_table_shows_cost_and_ratio_of_each_history() -> None:
    shown = lines(history(100_000, 10.0, 20.0), history(1_000_000, 12.0, 20.0))

    assert [line.split(" | ")[:4] for line in shown] == [
        ["| 100,000", "100", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["| 1,000,000", "1,000", "16.0 (12.0 to 20.0)", "1.10 (1.00 to 1.20)"],
    ]
    # Files opened and their size, what was read of them, what was written.
    assert shown[0].endswith("| 1 | 3.0 | 0 | 1.0 | 0 | 0.0 |")


def test_what_people_wrote_between_the_generated_parts_stays() -> None:
    written = with_results(page_of("machine"), results(history(1, 10.0)))

    assert written.startswith("Before.\n<!-- generated: machine -->\nMeasured on 2026-")
    assert written.endswith("<!-- /generated -->\nAfter.\n")
    assert "old" not in written


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    measured = results(history(100_000, 10.0, 20.0), history(1_000_000, 12.0, 20.0))
    one, other = drawn_twice(measured, tmp_path)

    assert one == other


def test_what_was_not_counted_is_not_zero() -> None:
    unknown = History(1, 1.0, [increment(10.0, bytes_read=None)])

    assert "| 0 | 1.0 | 0 |" in lines(history(1, 10.0))[0]
    assert "| 0 | unknown | 0 |" in lines(unknown)[0]


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [("a", 1000), ("1000", 1000), ("100000", 20_000), ("100000", 999), ("100500", 1000)],
)
def test_sizes_that_make_no_sense_are_refused(sizes: str, rows: int) -> None:
    with pytest.raises(ConfigurationError, match="--"):
        sizes_of(sizes, rows)


def test_sizes_are_taken_from_the_smallest() -> None:
    assert sizes_of("50000,20000", 1000) == [Size(20_000, 1000), Size(50_000, 1000)]
