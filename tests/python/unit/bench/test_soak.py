"""When a soak counts as bounded, and how the docs show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.report.soak_results import Series, Soak, draw, growing, with_soak
from spark_ingest.errors import ConfigurationError
from tests.python.unit.bench.measured import about

ABOUT = about("soak", minutes=30)


def over_minutes(values: Sequence[float]) -> Series:
    return Series.of([(60.0 * minute, value) for minute, value in enumerate(values)])


def soaked(files: list[int], seconds: list[float]) -> Soak:
    """A soak whose table had these files, and whose batches took this long, in order."""
    return Soak(
        about=ABOUT, rate=500, every="2s", maintain_every="2m", keep="4m", sent=9000,
        verified=True, restarts=0, rounds=3, commits=len(seconds),
        series={
            "batch seconds": over_minutes(seconds),
            "files": over_minutes(files),
            "snapshots": over_minutes([100] * len(files)),
            "metadata MB": over_minutes([1] * len(files)),
        },
    )  # fmt: skip


def test_a_sawtooth_is_bounded() -> None:
    assert growing(soaked([10, 200, 10, 210, 5, 190] * 5, [0.4] * 30)) == []


def test_what_goes_on_growing_is_named() -> None:
    found = growing(soaked(list(range(0, 3000, 100)), [0.4] * 20 + [2.0] * 10))
    assert [line.split(" went from ")[0] for line in found] == [
        "batch seconds",
        "files",
    ]


def test_one_slow_batch_is_not_growth() -> None:
    assert growing(soaked([10] * 30, [0.4] * 29 + [60.0])) == []


def test_a_soak_that_was_too_short_says_nothing() -> None:
    with pytest.raises(ConfigurationError, match="give it more --minutes"):
        growing(soaked([10], [0.4]))


def test_the_page_gets_the_numbers_and_the_plot_is_the_same_twice(
    tmp_path: Path,
) -> None:
    soak = soaked([10, 200] * 15, [0.4] * 30)
    page = "# P\n<!-- generated: soak -->\nearlier\n<!-- /generated -->\nend\n"
    text = with_soak(page, soak)
    assert "| files | 105 / 200 | 105 / 200 | 105 / 200 |" in text
    assert "9,000 records at 500 a second" in text
    assert "nothing grew with time" in text
    assert "earlier" not in text
    assert with_soak(text, soak) == text
    for name in ("one.png", "two.png"):
        draw(soak, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_of_many_points_the_file_keeps_few_and_the_thirds_of_all() -> None:
    one = over_minutes(range(999))

    assert len(one.points) == 200
    assert one.points[1] == (300.0, 5.0)
    assert [third and third[1] for third in one.thirds] == [332.0, 665.0, 998.0]
