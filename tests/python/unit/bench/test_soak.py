"""When a soak counts as bounded, and how the docs show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.report.page import with_results
from bench.report.results import Results
from bench.soak import growing, seen, soaked
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about, drawn_twice, page_of


def over_minutes(values: Sequence[float]) -> list[tuple[float, float]]:
    return [(60.0 * minute, value) for minute, value in enumerate(values)]


def of(files: Sequence[int], seconds: Sequence[float]) -> Results:
    """A soak whose table had these files, and whose batches took this long, in order."""
    return seen(
        {
            "batch seconds": over_minutes(seconds),
            "files": over_minutes(files),
            "snapshots": over_minutes([100] * len(files)),
            "metadata MB": over_minutes([1] * len(files)),
        }
    )


def test_a_sawtooth_is_bounded() -> None:
    assert growing(of([10, 200, 10, 210, 5, 190] * 5, [0.4] * 30)) == []


def test_what_goes_on_growing_is_named() -> None:
    found = growing(of(list(range(0, 3000, 100)), [0.4] * 20 + [2.0] * 10))
    assert [line.split(" went from ")[0] for line in found] == ["batch seconds", "files"]


def test_one_slow_batch_is_not_growth() -> None:
    assert growing(of([10] * 30, [0.4] * 29 + [60.0])) == []


def test_a_soak_that_was_too_short_says_nothing() -> None:
    with pytest.raises(ConfigurationError, match="give it more --minutes"):
        growing(of([10], [0.4]))


def test_the_page_gets_the_numbers_and_the_plot_is_the_same_twice(tmp_path: Path) -> None:
    summary = "9,000 records at 500 a second"
    soak = soaked(of([10, 200] * 15, [0.4] * 30), summary, about("soak", minutes=30))
    text = with_results(page_of("soak"), soak)
    assert "| files | 105 / 200 | 105 / 200 | 105 / 200 |" in text
    assert "9,000 records at 500 a second" in text
    assert "nothing grew with time" in text
    assert "old" not in text
    assert with_results(text, soak) == text
    one, other = drawn_twice(soak, tmp_path)
    assert one == other


def test_of_many_points_the_file_keeps_few_and_the_thirds_of_all() -> None:
    soak = of(range(999), [0.4] * 999)
    _, files, *_ = soak.plots["soak.png"].axes

    assert len(files.lines[0].points) == 200
    assert files.lines[0].points[1] == (5.0, 5.0)
    assert soak.table("soak").rows[1][1:] == [[166, 332], [499, 665], [832, 998]]
