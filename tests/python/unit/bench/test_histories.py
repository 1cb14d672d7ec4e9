"""The benchmark of captured histories: counts, limits and output."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.histories.__main__ import BENCHMARK, sizes_of
from bench.histories.records import STRIDE
from bench.histories.results import KINDS, History, Step, results_of
from bench.increments.table_use import TableUse
from bench.report.page import table_lines, with_results
from bench.report.results import Results, Spread, write_kept
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about, drawn_twice, page_of

pytestmark = pytest.mark.unit


def step(kind: str, seconds: float) -> Step:
    return Step(
        kind=kind,
        changes=1000,
        load=0.5,
        seconds=seconds,
        find_seconds=1,
        write_seconds=2,
        tables={
            "intermediate.a": TableUse(
                bytes_read=3 * 2**20, files_written=4, delete_files_written=1, bytes_written=2**20
            )
        },
    )


def history(rows: int, *seconds: float, others: tuple[float, ...] = ()) -> History:
    return History(
        rows=rows,
        build_seconds=rows / 1000,
        steps=[step(kind, each) for kind in KINDS for each in seconds],
        others=[step("something", each) for each in others],
    )


def results(*histories: History) -> Results:
    return results_of(histories, 1000, 1, about("histories"))


def lines(part: str, *histories: History) -> list[list[str]]:
    """The cells of a part's table, without its heading."""
    shown = table_lines(results(*histories).table(part))[2:]
    return [line.strip("| ").split(" | ") for line in shown]


def test_ratios_compare_increments_of_one_round() -> None:
    # The machine was slow in the second round, for both.
    measured = results(history(1000, 10, 40, 10), history(2000, 11, 48, 13))

    assert measured.table("histories").rows[3][4] == Spread(least=1.1, median=1.2, most=1.3)


@pytest.mark.parametrize(("largest", "flat"), [(20.0, True), (20.1, False)])
def test_twice_the_cost_of_the_smallest_is_the_limit(largest: float, flat: bool) -> None:
    measured = results(history(1000, 10.0), history(2000, largest))

    assert (BENCHMARK.beyond(measured) == []) is flat


@pytest.mark.parametrize(("late", "fast"), [(12.0, True), (12.1, False)])
def test_what_comes_late_takes_little_more_than_a_full_refresh(late: float, fast: bool) -> None:
    measured = results(history(1000, 10.0, others=(late, 10.0)))

    assert (BENCHMARK.beyond(measured) == []) is fast


def test_the_other_kind_of_increment_does_not_count() -> None:
    larger = history(2000, 10.0)
    larger.steps[0] = step(KINDS[0], 99.0)

    assert BENCHMARK.beyond(results(history(1000, 10.0), larger)) == []


def test_the_table_has_each_kind_of_each_history() -> None:
    rows = lines("histories", history(1000, 10.0, 20.0), history(2000, 30.0, 40.0))

    assert [row[:5] for row in rows] == [
        ["1,000", KINDS[0], "1", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["1,000", KINDS[1], "1", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["2,000", KINDS[0], "2", "35.0 (30.0 to 40.0)", "2.50 (2.00 to 3.00)"],
        ["2,000", KINDS[1], "2", "35.0 (30.0 to 40.0)", "2.50 (2.00 to 3.00)"],
    ]
    # What is new, the write, MiB opened, files with those of deletes, MiB written.
    assert rows[0][5:] == ["1.0", "2.0", "3.0", "5", "1.0"]


def test_what_disturbs_is_compared_with_the_refresh_at_the_end() -> None:
    rows = lines("histories_disturbed", history(1000, 10.0, others=(30.0, 20.0)))

    assert [row[3:5] for row in rows] == [["30.0", "1.50"], ["20.0", "1.00"]]


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    measured = results(history(1000, 10.0, 20.0), history(2000, 12.0, 20.0))
    one, other = drawn_twice(measured, tmp_path)

    assert one == other


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    measured, file = results(history(1000, 10.0)), tmp_path / "a.json"
    write_kept(measured, file)

    assert BENCHMARK.read(file) == measured


def test_what_people_wrote_between_the_generated_parts_stays() -> None:
    page = page_of("histories", "histories_disturbed")

    written = with_results(page, results(history(1000, 10.0, others=(20.0,))))

    assert written.startswith("Before.\n<!-- generated: histories -->\n| rows |")
    assert "\nBetween.\n" in written
    assert written.endswith("<!-- /generated -->\nAfter.\n")
    assert "old" not in written


@pytest.mark.parametrize(
    ("sizes", "changes", "again"),
    [
        ("a", 1000, 1000),
        ("1500", 1000, 1000),
        ("7919000", 1000, 1000),
        ("1000", 2000, 1000),
        ("1000", 1000, 2000),
        ("1000", 1000, 99),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes: str, changes: int, again: int) -> None:
    with pytest.raises(ConfigurationError, match="--"):
        sizes_of(sizes, changes, again)


def test_sizes_are_taken_from_the_smallest() -> None:
    assert sizes_of("2000,1000", 1000, 1000) == [1000, 2000]


def test_updates_reach_every_row_before_any_twice() -> None:
    assert len({number * STRIDE % 4000 for number in range(4000)}) == 4000
