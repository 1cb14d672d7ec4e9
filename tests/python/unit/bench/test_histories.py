"""The benchmark of captured histories: what it counts, how it judges, what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.histories.__main__ import sizes_of
from bench.histories.records import STRIDE
from bench.increments.table_use import TableUse
from bench.report.histories_page import draw, other_table, table, with_results
from bench.report.histories_results import (
    History,
    Results,
    Step,
    is_flat,
    ratios,
    read_results,
)
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about

pytestmark = pytest.mark.unit

KINDS = ["copy-on-write", "merge-on-read"]


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
                bytes_read=3 * 2**20,
                files_written=4,
                delete_files_written=1,
                bytes_written=2**20,
            )
        },
    )


def history(rows: int, *seconds: float, others: tuple[float, ...] = ()) -> History:
    return History(
        rows=rows,
        fill_seconds=1,
        files=2,
        bytes=100,
        build=step("full build", rows / 1000),
        steps=[step(kind, each) for kind in KINDS for each in seconds],
        others=[step("something", each) for each in others],
    )


def results(*histories: History) -> Results:
    return Results(
        about=about("histories"),
        changes=1000,
        warm_ups=1,
        kinds=KINDS,
        histories=list(histories),
    )


def test_ratios_compare_increments_of_one_round() -> None:
    # The machine was slow in the second round, for both.
    measured = results(history(1000, 10, 40, 10), history(2000, 11, 48, 13))

    found = ratios(measured, measured.histories[1], KINDS[1])

    assert (found.least, found.median, found.most) == (1.1, 1.2, 1.3)


@pytest.mark.parametrize(("largest", "flat"), [(20.0, True), (20.1, False)])
def test_twice_the_cost_of_the_smallest_is_the_limit(
    largest: float, flat: bool
) -> None:
    assert is_flat(results(history(1000, 10.0), history(2000, largest))) is flat


def test_the_other_kind_of_increment_does_not_count() -> None:
    measured = results(history(1000, 10.0), history(2000, 10.0))
    measured.histories[1].steps[0] = step(KINDS[0], 99.0)

    assert is_flat(measured)


def test_the_table_has_each_kind_of_each_history() -> None:
    lines = table(results(history(1000, 10.0, 20.0), history(2000, 30.0, 40.0)))

    assert [line.split(" | ")[:5] for line in lines[2:]] == [
        ["| 1,000", KINDS[0], "1", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["| 1,000", KINDS[1], "1", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["| 2,000", KINDS[0], "2", "35.0 (30.0 to 40.0)", "2.50 (2.00 to 3.00)"],
        ["| 2,000", KINDS[1], "2", "35.0 (30.0 to 40.0)", "2.50 (2.00 to 3.00)"],
    ]
    # What is new, the write, MiB opened, files with those of deletes, MiB written.
    assert lines[2].endswith("| 1.0 | 2.0 | 3.0 | 5 | 1.0 |")


def test_what_disturbs_is_compared_with_the_refresh_at_the_end() -> None:
    lines = other_table(results(history(1000, 10.0, others=(30.0, 20.0))))

    assert [line.split(" | ")[3:5] for line in lines[2:]] == [
        ["30.0", "1.50"],
        ["20.0", "1.00"],
    ]


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    measured = results(history(1000, 10.0, 20.0), history(2000, 12.0, 20.0))
    for name in ("a.png", "b.png"):
        draw(measured, tmp_path / name)

    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    measured, file = results(history(1000, 10.0)), tmp_path / "a.json"
    file.write_text(measured.model_dump_json())

    assert read_results(file) == measured


def test_what_people_wrote_between_the_generated_parts_stays() -> None:
    page = (
        "Before.\n<!-- generated: histories -->\nold\n<!-- /generated -->\nBetween.\n"
        "<!-- generated: histories_disturbed -->\nold\n<!-- /generated -->\nAfter.\n"
    )

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
def test_sizes_that_make_no_sense_are_refused(
    sizes: str, changes: int, again: int
) -> None:
    with pytest.raises(ConfigurationError, match="--"):
        sizes_of(sizes, changes, again)


def test_sizes_are_taken_from_the_smallest() -> None:
    assert sizes_of("2000,1000", 1000, 1000) == [1000, 2000]


def test_updates_reach_every_row_before_any_twice() -> None:
    assert len({number * STRIDE % 4000 for number in range(4000)}) == 4000
