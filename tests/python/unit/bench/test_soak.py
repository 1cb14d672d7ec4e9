"""When a soak counts as bounded, and how the docs show it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.report.results import About, Machine
from bench.report.soak_results import (
    Batch,
    Sample,
    Soak,
    draw,
    growing,
    series,
    with_soak,
)
from spark_ingest.errors import ConfigurationError

MACHINE = Machine(
    processor="a processor", cores=2, memory_gib=24, system="Linux", versions={}
)
ABOUT = About(
    measured_on="2026-01-01",
    minutes=30,
    command="python -m bench.soak",
    machine=MACHINE,
    load_before=0.1,
)


def soaked(files: list[int], seconds: list[float]) -> Soak:
    """A soak whose table had these files, and whose batches took this long, in order."""
    return Soak(
        about=ABOUT, rate=500, every="2s", maintain_every="2m", keep="4m", sent=9000,
        verified=True, restarts=0, rounds=3,
        samples=[
            Sample(at=60.0 * i, files=n, snapshots=100, metadata_bytes=2**20)
            for i, n in enumerate(files)
        ],
        batches=[
            Batch(at=60.0 * i, seconds=each, rows=1000)
            for i, each in enumerate(seconds)
        ],
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
    for name in ("one.svg", "two.svg"):
        draw(soak, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert list(series(soak)) == ["batch seconds", "files", "snapshots", "metadata MB"]
