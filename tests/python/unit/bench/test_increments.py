"""The benchmark of increments: what it counts, how it judges, what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.increments.__main__ import sizes_of
from bench.increments.lake import Size
from bench.increments.table_use import Scan, TableUse, use_by_table
from bench.report.increments_page import draw, table, with_results
from bench.report.increments_results import (
    Build,
    History,
    Increment,
    ModelTime,
    Results,
    is_flat,
    ratios,
    read_results,
)
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import MACHINE

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


def increment(seconds: float, files: int = 1) -> Increment:
    return Increment(
        number=1,
        load=0.5,
        seconds=seconds,
        models_seconds=seconds - 1,
        models={"fct_a": ModelTime(compile_seconds=1, execute_seconds=2)},
        bytes_read=2**20,
        tables={"marts.fct_a": TableUse(files_read=files, bytes_read=3 * 2**20)},
    )


def history(rows: int, *seconds: float) -> History:
    return History(
        rows=rows,
        fill_seconds=1,
        build=Build(seconds=rows / 1000, models={}),
        increments=[increment(each) for each in seconds],
    )


def results(*histories: History) -> Results:
    return Results(
        measured_on="2026-01-02",
        minutes=12.3,
        machine=MACHINE,
        increment_rows=10_000,
        day_rows=100_000,
        warm_ups=2,
        histories=list(histories),
    )


def test_scans_and_commits_are_summed_by_table() -> None:
    scan = Scan(
        "marts.fct_a",
        {
            "TotalPlanningDuration": 1500,
            "ScannedDataManifests": 4,
            "ResultDataFiles": 5,
            "ResultDeleteFiles": 2,
            "TotalDataFileSize": 100,
            "number of output rows": 7,
        },
    )

    uses = use_by_table([scan, scan, Scan("bronze.b", {})], [COMMIT, "other\n", COMMIT])

    assert uses == {
        "bronze.b": TableUse(scans=1),
        "marts.fct_a": TableUse(
            scans=2,
            planning_seconds=3.0,
            manifests_read=8,
            files_read=10,
            bytes_read=200,
            rows_read=14,
            commits=2,
            files_written=4,
            bytes_written=1000,
            files_removed=6,
            delete_files_read=4,
            delete_files_written=14,
        ),
    }


def test_ratios_compare_increments_of_one_round() -> None:
    # The machine was slow in the second round, for both.
    found = ratios(results(history(1, 10, 40, 10), history(2, 11, 48, 13)), rows=2)

    assert (found.least, found.median, found.most) == (1.1, 1.2, 1.3)


@pytest.mark.parametrize(("longest", "flat"), [(15.0, True), (15.1, False)])
def test_a_history_that_costs_half_more_is_not_flat(longest: float, flat: bool) -> None:
    measured = results(history(1, 10.0), history(2, 9.0), history(3, longest))

    assert is_flat(measured) is flat


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    measured, file = results(history(1, 10.0), history(2, 9.0)), tmp_path / "a.json"
    file.write_text(measured.model_dump_json())

    assert read_results(file) == measured


@pytest.mark.parametrize("text", [None, "{}", "no json"])
def test_a_file_without_results_names_the_way_to_them(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "a.json"
    if text is not None:
        file.write_text(text)

    with pytest.raises(
        ConfigurationError, match=r"a\.json .*make bench|a\.json .*again"
    ):
        read_results(file)


def test_the_table_shows_cost_and_ratio_of_each_history() -> None:
    lines = table(results(history(100_000, 10.0, 20.0), history(1_000_000, 12.0, 20.0)))

    assert [line.split(" | ")[:4] for line in lines[2:]] == [
        ["| 100,000", "100", "15.0 (10.0 to 20.0)", "1.00 (1.00 to 1.00)"],
        ["| 1,000,000", "1000", "16.0 (12.0 to 20.0)", "1.10 (1.00 to 1.20)"],
    ]
    # Files opened and their size, what was read of them, what was written.
    assert lines[2].endswith("| 1 | 3.0 | 0 | 1.0 | 0 | 0.0 |")


def test_what_people_wrote_between_the_generated_parts_stays() -> None:
    page = "Before.\n<!-- generated: machine -->\nold\n<!-- /generated -->\nAfter.\n"

    written = with_results(page, results(history(1, 10.0)))

    assert written.startswith("Before.\n<!-- generated: machine -->\nMeasured on 2026-")
    assert written.endswith("<!-- /generated -->\nAfter.\n")
    assert "old" not in written


def test_the_same_results_give_the_same_plot(tmp_path: Path) -> None:
    measured = results(history(100_000, 10.0, 20.0), history(1_000_000, 12.0, 20.0))
    for name in ("a.png", "b.png"):
        draw(measured, tmp_path / name)

    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_what_was_not_counted_is_not_zero() -> None:
    measured = results(history(1, 10.0))
    unknown = measured.model_copy(
        update={
            "histories": [
                history(1).model_copy(
                    update={
                        "increments": [
                            increment(10.0).model_copy(update={"bytes_read": None})
                        ]
                    }
                )
            ]
        }
    )

    assert "| 0 | 1.0 | 0 |" in table(measured)[2]
    assert "| 0 | unknown | 0 |" in table(unknown)[2]


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ("a", 1000),
        ("1000", 1000),
        ("100000", 20_000),
        ("100000", 999),
        ("100500", 1000),
    ],
)
def test_sizes_that_make_no_sense_are_refused(sizes: str, rows: int) -> None:
    with pytest.raises(ConfigurationError, match="--"):
        sizes_of(sizes, rows)


def test_sizes_are_taken_from_the_smallest() -> None:
    assert sizes_of("50000,20000", 1000) == [Size(20_000, 1000), Size(50_000, 1000)]
