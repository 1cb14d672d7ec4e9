"""When a page of the dashboard counts as slow, and how the docs show what was measured.

Fails when a slow page passes, or the docs show other numbers than the results have.
"""

from __future__ import annotations

import pytest

from bench.dashboard import BENCHMARK, Page, results_of
from bench.report.page import with_results
from bench.report.results import Results
from tests.python.unit.bench.measured import about, page_of


def page(name: str, shown: list[float], missing: int = 0) -> Page:
    return Page(
        name=name,
        tables=3,
        missing=missing,
        rows=12_345,
        queries=4,
        look=[0.01, 0.02, 0.01],
        asked=[0.2, 0.3, 0.2],
        shown=shown,
        again=[0.05, 0.05, 0.06],
    )


def measured(*pages: Page) -> Results:
    return results_of(list(pages), {"DuckDB": "1.0"}, about("dashboard", minutes=1))


@pytest.mark.parametrize(
    ("shown", "is_slow"),
    [([0.4, 0.5, 3.0], False), ([1.0, 1.0, 1.0], False), ([0.4, 1.1, 1.2], True)],
    ids=["slow once", "at the limit", "slow"],
)
def test_the_median_of_a_page_makes_it_slow(shown: list[float], is_slow: bool) -> None:
    found = BENCHMARK.beyond(measured(page("one", [0.1, 0.1, 0.1]), page("other", shown)))

    slow = ["the whole page, s of other is 1.10, more than 1"]
    assert found == (slow if is_slow else [])


def test_the_docs_get_the_numbers() -> None:
    results = measured(page("overview", [0.4, 0.5, 0.6], missing=2))
    text = with_results(page_of("dashboard"), results)

    assert (
        "| overview | 3 | 12,345 | 4 | 0.01 / 0.02 | 0.20 / 0.30 | 0.50 / 0.60 | 0.50 |"
        " 0.05 / 0.06 |\n" in text
    )
    assert "Median / slowest of 3 times" in text
    assert "DuckDB 1.0. Tables that were not built: 2 of `overview`." in text
    assert "old" not in text
    assert with_results(text, results) == text
