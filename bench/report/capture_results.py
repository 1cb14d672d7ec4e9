"""What was measured of a captured database, and how the docs show it."""

from __future__ import annotations

from pathlib import Path

from bench.report.page import PAGE, PLOTS, about_text, new_figure, save_plot
from bench.report.results import About, Kept, read_kept
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

RESULTS = PROJECT / "bench/results/capture.json"
PLOT = PLOTS / "capture.png"


class Waits(Kept):
    """Seconds from a change's commit in the database until it is there, for a share of them.

    Attributes:
        hundredths: Of each hundredth of the changes the longest, in order.
    """

    p50: float
    p95: float
    p99: float
    hundredths: list[float]


class Steady(Kept):
    """Changes at a steady rate.

    Attributes:
        rate: Changes a second that the database was given.
        changes: That count.
        bronze: Until they are in bronze.
        live: Until an answer of the live view has them that is asked for when bronze has them.
        answer_seconds: What the middle one of its answers took.
        current: Until they are in the current state.
        build_every: Seconds from the beginning of a round of dbt to that of the next.
        rounds: Of dbt in that time.
        round_seconds: The middle one's.
        cores: What ingest and dbt took together, as cores.
    """

    rate: float
    changes: int
    bronze: Waits
    live: Waits
    answer_seconds: float
    current: Waits
    build_every: float
    rounds: int
    round_seconds: float
    cores: float


class Stage(Kept):
    """How fast a part of the way took what was there at once.

    Attributes:
        name: Up to where.
        seconds: From the first change's commit until all were there.
        changes_per_second: All changes by that time.
    """

    name: str
    seconds: float
    changes_per_second: float


class Capture(Kept):
    """The whole measurement.

    Attributes:
        about: When, where and how.
        every: Of `spark-ingest run`.
        rows: Of the tables at the beginning.
        steady: At a steady rate.
        burst_changes: Committed as fast as the database takes them.
        burst: Of those, each part of the way in its order.
    """

    about: About
    every: str
    rows: int
    steady: Steady
    burst_changes: int
    burst: list[Stage]


def steady_table(capture: Capture) -> list[str]:
    """From commit to bronze, and to the current state."""
    steady = capture.steady
    waits = {
        "bronze": steady.bronze,
        "an answer of the live view": steady.live,
        "current state": steady.current,
    }
    return markdown(
        ["from the database's commit to", "p50, s", "p95, s", "p99, s"],
        (
            [name, f"{of.p50:.1f}", f"{of.p95:.1f}", f"{of.p99:.1f}"]
            for name, of in waits.items()
        ),
    )


def burst_table(capture: Capture) -> list[str]:
    """What each part of the way has done when all of a burst has arrived there."""
    return markdown(
        ["up to", "seconds", "changes/s"],
        (
            [stage.name, f"{stage.seconds:.0f}", f"{stage.changes_per_second:,.0f}"]
            for stage in capture.burst
        ),
    )


def text(capture: Capture) -> list[str]:
    """What the tables are of."""
    steady = capture.steady
    return [
        (
            f"{steady.changes:,} changes at {steady.rate:g} a second on {capture.rows:,} rows,"
            f" `spark-ingest run --every {capture.every}`; a round of dbt every"
            f" {steady.build_every:g} s, {steady.rounds} of them, the middle one"
            f" {steady.round_seconds:.1f} s; an answer took {steady.answer_seconds:.1f} s; ingest,"
            f" dbt and who asks took {steady.cores:.1f} cores."
        ),
        "",
        about_text(capture.about),
    ]


def with_capture(page: str, capture: Capture) -> str:
    """A page's text with its generated parts made from results."""
    return with_parts(
        page,
        {
            "capture": [*steady_table(capture), "", *text(capture)],
            "capture_burst": [
                *burst_table(capture),
                "",
                (
                    f"{capture.burst_changes:,} changes, committed as fast as the database takes"
                    " them."
                ),
            ],
        },
    )


def write_page(capture: Capture, page: Path = PAGE, plot: Path = PLOT) -> None:
    """Write the generated parts of the page, and its plot."""
    page.write_text(with_capture(page.read_text(), capture))
    draw(capture, plot)


def draw(capture: Capture, file: Path) -> None:
    """Draw which share of the changes was there after so many seconds."""
    figure = new_figure(3.2)
    axes = figure.subplots()
    ways = (
        ("bronze", capture.steady.bronze, "tab:orange", "-"),
        ("live view", capture.steady.live, "tab:green", "-."),
        ("current state", capture.steady.current, "tab:blue", "--"),
    )
    for name, waits, color, line in ways:
        axes.plot(
            [0, *waits.hundredths],
            range(len(waits.hundredths) + 1),
            color=color,
            linestyle=line,
            label=name,
        )
    axes.set_xlabel("seconds since the database's commit")
    axes.set_ylabel("% of changes")
    axes.set_xlim(left=0)
    axes.set_ylim(0, 100)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower right")
    save_plot(figure, file)


def read_capture(file: Path) -> Capture:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Capture, "make bench-cdc")
