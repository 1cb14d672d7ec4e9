"""What a soak measured, whether it stayed bounded, and how the docs show it."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from statistics import median

from bench.report.page import PAGE, PLOTS, about_text, new_figure, save_plot
from bench.report.results import About, Kept, read_kept
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT
from spark_ingest.errors import ConfigurationError

RESULTS = PROJECT / "bench/results/soak.json"
PLOT = PLOTS / "soak.png"
_PICTURE = (
    "![Batch seconds, files, snapshots and metadata megabytes over the minutes of a run]"
    "(performance/soak.png)"
)
# What grows with time would be twice as much, or more, in the last third as in the second.
_GROWTH = 1.5
_POINTS = 200
# Differences of less than these are noise.
_NOISE = {"batch seconds": 0.3, "files": 30, "snapshots": 30, "metadata MB": 1.0}


class Series(Kept):
    """What was seen of one thing over the time of a soak.

    Attributes:
        thirds: Of each third of the time the median and the most; None without any value.
        points: Seconds since the first commit and values, as the plot shows them.
    """

    thirds: list[tuple[float, float] | None]
    points: list[tuple[float, float]]

    @classmethod
    def of(cls, points: list[tuple[float, float]]) -> Series:
        """All that was seen, as seconds and values in their order."""
        end = max((at for at, _ in points), default=0.0)
        values: list[list[float]] = [[], [], []]
        for at, value in points:
            values[min(int(3 * at / end), 2) if end else 0].append(value)
        return cls(
            thirds=[(median(part), max(part)) if part else None for part in values],
            points=points[:: max(ceil(len(points) / _POINTS), 1)],
        )


class Soak(Kept):
    """A long run with maintenance beside it.

    Attributes:
        about: When, where and how.
        rate: Records a second that were produced.
        every: Of the stream.
        maintain_every: Of maintenance.
        keep: Of maintenance.
        sent: Records that were produced.
        verified: Whether `spark-ingest verify` held afterwards.
        restarts: Times the stream read its offsets again.
        rounds: Rounds of maintenance.
        commits: Of the stream.
        series: What must stay bounded.
    """

    about: About
    rate: int
    every: str
    maintain_every: str
    keep: str
    sent: int
    verified: bool
    restarts: int
    rounds: int
    commits: int
    series: dict[str, Series]


def growing(soak: Soak) -> list[str]:
    """What was not bounded: higher in the last third of the time than in the second.

    Of a batch's time the median counts, of all else the most.
    """
    found = []
    for name, one in soak.series.items():
        _, second_third, last_third = one.thirds
        if second_third is None or last_third is None:
            raise ConfigurationError(
                f"the soak has no {name} over its whole time: give it more --minutes"
            )
        which = 0 if name == "batch seconds" else 1
        second, last = second_third[which], last_third[which]
        if last > second * _GROWTH and last - second > _NOISE[name]:
            found.append(f"{name} went from {second:,.2f} to {last:,.2f}")
    return found


def soak_table(soak: Soak) -> list[str]:
    """The least, the middle and the most of each, by thirds of the time."""
    rows = []
    for name, one in soak.series.items():
        digits = 2 if name in ("batch seconds", "metadata MB") else 0
        cells = [
            " / ".join(f"{value:,.{digits}f}" for value in third or ())
            for third in one.thirds
        ]
        rows.append([name, *cells])
    return markdown(["median / most in the", "first third", "second", "last"], rows)


def text(soak: Soak) -> list[str]:
    """What was run, and what came of it."""
    growth = growing(soak)
    return [
        (
            f"{soak.sent:,} records at {soak.rate} a second, {soak.commits:,} commits with"
            f" `--every {soak.every}`, {soak.rounds} rounds of `maintain --every"
            f" {soak.maintain_every} --keep {soak.keep}`; the stream read its offsets again"
            f" {soak.restarts} times; `verify` {'holds' if soak.verified else 'FAILED'};"
            f" {'; '.join(growth) if growth else 'nothing grew with time'}."
        ),
        "",
        about_text(soak.about),
    ]


def write_page(soak: Soak, page: Path = PAGE, plot: Path = PLOT) -> None:
    """Write the soak's generated part of the page, and its plot."""
    page.write_text(with_soak(page.read_text(), soak))
    draw(soak, plot)


def with_soak(page: str, soak: Soak) -> str:
    """A page's text with the soak's part replaced."""
    lines = [_PICTURE, "", *soak_table(soak), "", *text(soak)]
    return with_parts(page, {"soak": lines})


def draw(soak: Soak, file: Path) -> None:
    """Draw each of the series over minutes."""
    figure = new_figure(4.6)
    for axes, (name, one) in zip(
        figure.subplots(2, 2).flat, soak.series.items(), strict=True
    ):
        style = "." if name == "batch seconds" else "-"
        minutes = [at / 60 for at, _ in one.points]
        axes.plot(
            minutes, [value for _, value in one.points], style, color="tab:blue", ms=2
        )
        axes.set_ylim(bottom=0)
        axes.set_ylabel(name)
        axes.set_xlabel("minutes")
        axes.grid(visible=True, alpha=0.3)
    save_plot(figure, file)


def read_soak(file: Path) -> Soak:
    """A soak from its file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Soak, "python -m bench.soak")
