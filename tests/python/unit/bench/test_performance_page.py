"""docs/performance.md shows the results that are kept, which stay within their limits.

Fails when a page or plot shows something else than the results, or results are over a limit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import bench.capture.__main__ as capture
import bench.histories.__main__ as histories
import bench.increments.__main__ as increments
import bench.ingest.__main__ as ingest
from bench import dashboard, facts_by_keys, publish, soak
from bench.report.page import PAGE, PLOTS, write_page
from bench.report.results import number_of
from bench.run import Benchmark

pytestmark = pytest.mark.unit

BENCHMARKS = [
    each.BENCHMARK
    for each in (
        *(capture, dashboard, facts_by_keys, histories),
        *(increments, ingest, publish, soak),
    )
]


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda each: each.name)
def test_the_page_and_its_plots_show_the_results_that_are_there(
    benchmark: Benchmark, tmp_path: Path
) -> None:
    page, results = tmp_path / "page.md", benchmark.read()
    page.write_text(PAGE.read_text())

    write_page(results, page, tmp_path)

    assert page.read_text() == PAGE.read_text()
    assert all((PLOTS / name).exists() for name in results.plots)
    assert all((tmp_path / name).exists() for name in results.plots)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda each: each.name)
def test_the_results_that_are_there_are_within_their_limits(benchmark: Benchmark) -> None:
    assert benchmark.beyond(benchmark.read()) == []


@pytest.mark.parametrize(
    ("benchmark", "rows"),
    [(increments.BENCHMARK, "rows of history"), (histories.BENCHMARK, "rows")],
    ids=["increments", "histories"],
)
def test_what_is_flat_is_flat_on_a_hundred_times_as_many_rows(
    benchmark: Benchmark, rows: str
) -> None:
    counts = benchmark.read().table(benchmark.name).column(rows)

    assert number_of(counts[0]) * 100 <= number_of(counts[-1])


def test_a_mart_and_its_changes_are_published_fast_enough() -> None:
    sent = publish.BENCHMARK.read().table("publish")

    for what, rate in zip(sent.column("what is sent"), sent.column("records/s"), strict=True):
        assert number_of(rate) >= 20_000, what
