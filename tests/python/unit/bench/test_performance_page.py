"""docs/performance.md shows the results that are kept, which stay within their limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.report import (
    capture_results,
    dashboard_results,
    histories_page,
    histories_results,
    increments_page,
    increments_results,
    publish_results,
)
from bench.report.page import PAGE

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("results", "written", "plot"),
    [
        (
            increments_results.read_results(increments_page.RESULTS),
            increments_page.with_results,
            increments_page.PLOT,
        ),
        (
            histories_results.read_results(histories_page.RESULTS),
            histories_page.with_results,
            histories_page.PLOT,
        ),
        (
            capture_results.read_capture(capture_results.RESULTS),
            capture_results.with_capture,
            capture_results.PLOT,
        ),
    ],
    ids=["increments", "histories", "capture"],
)
def test_the_page_shows_the_results_that_are_there(
    results: Any, written: Callable[[str, Any], str], plot: Path
) -> None:
    assert written(PAGE.read_text(), results) == PAGE.read_text()
    assert plot.exists()


def test_what_should_be_flat_is_flat_on_a_hundred_times_as_many_rows() -> None:
    increments = increments_results.read_results(increments_page.RESULTS)
    histories = histories_results.read_results(histories_page.RESULTS)

    assert increments_results.is_flat(increments)
    assert histories_results.is_flat(histories)
    for rows in (
        [one.rows for one in increments.histories],
        [one.rows for one in histories.histories],
    ):
        assert rows[0] * 100 <= rows[-1]


def test_a_mart_and_its_changes_are_published_fast_enough() -> None:
    publications = publish_results.read_publications(publish_results.RESULTS)

    assert publish_results.with_publish(PAGE.read_text(), publications) == (
        PAGE.read_text()
    )
    for one in publications.sent:
        assert publish_results.rate(one) >= 20_000, one.what


def test_each_page_of_the_dashboard_is_shown_within_its_limit() -> None:
    dashboard = dashboard_results.read_dashboard(dashboard_results.RESULTS)

    assert dashboard_results.with_dashboard(PAGE.read_text(), dashboard) == (
        PAGE.read_text()
    )
    assert dashboard_results.slow(dashboard) == []
