"""What was measured of a captured database, as tables, words and a plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bench.capture.waits import Waits
from bench.report.results import About, Axes, Line, Plot, Results, Table

_WAITS = {"from the database's commit to": 0, "p50, s": 1, "p95, s": 1, "p99, s": 1}
_BURST = {"up to": 0, "seconds": 0, "changes/s": 0}
_LOOKS = {
    "bronze": ("tab:orange", "-"),
    "live view": ("tab:green", "-."),
    "current state": ("tab:blue", "--"),
}


@dataclass(frozen=True)
class Steady:
    """Changes at a steady rate.

    Attributes:
        rate: Changes a second that the database was given.
        changes: That count.
        bronze: Until they are in bronze.
        live: Until an answer of the live view has them that is asked for when bronze has them.
        answer_seconds: What the middle one of its answers took.
        current: Until they are in the current state.
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
    rounds: int
    round_seconds: float
    cores: float


@dataclass(frozen=True)
class Capture:
    """The whole measurement.

    Attributes:
        every: Of `spark-ingest run`.
        rows: Of the tables at the beginning.
        steady: At a steady rate.
        burst: Changes that are committed as fast as the database takes them.
        stages: Seconds until all of these were there, by each part of the way in its order.
    """

    every: str
    rows: int
    steady: Steady
    burst: int
    stages: Mapping[str, float]


def results_of(capture: Capture, about: About) -> Results:
    """From commit to bronze, to an answer and to the current state; how fast a burst goes."""
    steady = capture.steady
    ways = {"bronze": steady.bronze, "live view": steady.live, "current state": steady.current}
    summary = (
        f"{steady.changes:,} changes at {steady.rate:g} a second on {capture.rows:,} rows,"
        f" `spark-ingest run --every {capture.every}`; {steady.rounds} rounds of dbt, one after"
        f" the other, the middle one {steady.round_seconds:.1f} s; an answer took"
        f" {steady.answer_seconds:.1f} s; ingest, dbt and who asks took {steady.cores:.1f} cores."
    )
    waits = Table(
        columns=_WAITS,
        rows=[
            [name.replace("live", "an answer of the live"), of.p50, of.p95, of.p99]
            for name, of in ways.items()
        ],
    )
    burst = Table(
        columns=_BURST,
        rows=[
            [name, seconds, round(capture.burst / seconds)]
            for name, seconds in capture.stages.items()
        ],
    )
    once = f"{capture.burst:,} changes, committed as fast as the database takes them."
    lines = [
        Line(
            label=name,
            color=_LOOKS[name][0],
            style=_LOOKS[name][1],
            points=list(zip([0.0, *of.hundredths], range(101), strict=False)),
        )
        for name, of in ways.items()
    ]
    shares = Axes(lines=lines, x="seconds since the database's commit", y="% of changes", most=100)
    return Results(
        parts={"capture": [waits, summary, about], "capture_burst": [burst, once]},
        plots={"capture.png": Plot(height=3.2, columns=1, axes=[shares])},
    )
