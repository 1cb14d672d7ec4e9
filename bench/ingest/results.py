"""Results of the ingest benchmark, as tables, text and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from bench.ingest.load import Sent
from bench.report.results import About, Axes, Cell, Line, Plot, Results, Table

CARELESS = "careless spark job"
_COMPARISON = {
    "system": 0,
    "records/s": 0,
    "MB/s": 1,
    "CPU s per million": 2,
    "peak RSS, MiB": 0,
    "times the careless job": 2,
    "loses": 0,
}
_SCALING = {
    "what changes": 0,
    "case": 0,
    "bytes": 0,
    "records/s": 0,
    "MB/s": 1,
    "CPU s per million": 2,
    "MB": 0,
}
# In the generated parts, so that there is no link before there is a plot.
_COMPARISON_PLOT = (
    "![Records a second and CPU seconds for a million records, by system](performance/ingest.png)"
)
_SCALING_PLOT = (
    "![Records a second by records, partitions, executors, record size and fields]"
    "(performance/ingest-scaling.png)"
)
_OURS, _LIMIT, _PEER = "tab:blue", "tab:gray", "tab:orange"


@dataclass(frozen=True)
class Run:
    """One run of one system.

    Attributes:
        records: Records read.
        seconds: From the first read until the last record is visible to readers.
        cpu_seconds: User and system time of all its processes in that interval.
        peak_rss_mb: Peak total resident memory of these processes, MiB.
        load: One-minute load average before the run.
        loses: What it lost.
    """

    records: int
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    load: float
    loses: str

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.records / self.seconds

    @property
    def cpu_seconds_per_million(self) -> float:
        """CPU seconds per million records."""
        return self.cpu_seconds / self.records * 1e6


@dataclass(frozen=True)
class Load:
    """The load of a run.

    Attributes:
        sent: The records sent.
        fields: Number of fields of the newer schema.
        partitions: Number of partitions of the topic.
    """

    sent: Sent
    fields: int
    partitions: int

    @property
    def value_bytes(self) -> float:
        """Mean size of a framed value in bytes."""
        return round(self.sent.value_bytes / self.sent.records, 1)


@dataclass(frozen=True)
class Case:
    """One measurement of a series, such as 4 of the series "partitions".

    Attributes:
        series: The name of the series.
        name: The name of the case.
        load: The load.
        run: The result.
    """

    series: str
    name: str
    load: Load
    run: Run


def comparison(runs: Mapping[str, Sequence[Run]], load: Load, about: About) -> Results:
    """A row per system, fastest first: medians, and what it loses.

    Rates are compared with the careless job's in the same round, so that a temporarily slow
    machine does not distort the ratio.
    """
    rows = sorted(
        (_row(name, its, runs.get(CARELESS), load) for name, its in runs.items()),
        key=lambda row: -float(str(row[1])),
    )
    names = [str(row[0]).strip("*") for row in rows]
    loads = [run.load for its in runs.values() for run in its]
    sent, repeats = load.sent, len(next(iter(runs.values())))
    summary = (
        f"{sent.records:,} records of {load.fields} fields and {load.value_bytes:.0f} bytes in"
        f" {load.partitions} partitions; {sent.bad:,} of them are bad,"
        f" {sent.kinds['tombstone']:,} are tombstones. Medians of {repeats} runs each; load"
        f" before a run {min(loads):.1f} to {max(loads):.1f}, most of it from the run before."
    )

    def bars(column: int, times: float, x: str) -> Axes:
        lengths = [float(str(row[column])) * times for row in rows]
        points = list(zip(reversed(names), reversed(lengths), strict=True))
        colors = [_color(name) for name in reversed(names)]
        return Axes(kind="lying bars", x=x, lines=[Line(points=points, color=colors)])

    axes = [
        bars(1, 1 / 1000, "thousand records a second"),
        bars(3, 1, "CPU seconds for a million records"),
    ]
    return Results(
        parts={
            "ingest": [_COMPARISON_PLOT, Table(columns=_COMPARISON, rows=rows)],
            "ingest_machine": [about, summary],
        },
        plots={"ingest.png": Plot(height=3.2, columns=2, axes=axes)},
    )


def _row(name: str, runs: Sequence[Run], careless: Sequence[Run] | None, load: Load) -> list[Cell]:
    rate = median(run.rate for run in runs)
    return [
        f"**{name}**" if _is_ours(name) else name,
        round(rate),
        round(rate * load.value_bytes / 1e6, 1),
        round(median(run.cpu_seconds_per_million for run in runs), 2),
        round(max(run.peak_rss_mb for run in runs)),
        ""
        if careless is None
        else median(a.rate / b.rate for a, b in zip(runs, careless, strict=True)),
        runs[-1].loses,
    ]


def scaling(cases: Sequence[Case], about: About) -> Results:
    """A row per case, grouped by series, and a plot per series."""
    series = [case.series for case in cases]
    ordered = sorted(cases, key=lambda case: series.index(case.series))
    rows: list[list[Cell]] = [
        [
            case.series,
            case.name,
            case.load.value_bytes,
            case.run.rate,
            case.run.rate * case.load.value_bytes / 1e6,
            case.run.cpu_seconds_per_million,
            case.run.peak_rss_mb,
        ]
        for case in ordered
    ]
    axes = []
    for name, group in groupby(ordered, key=lambda case: case.series):
        its = list(group)
        colors = [_PEER if "careless" in case.name else _OURS for case in its]
        points: list[tuple[float | str, float]] = [
            (case.name, case.run.rate / 1000) for case in its
        ]
        bars = Line(points=points, color=colors)
        axes.append(Axes(kind="bars", title=name, lines=[bars]))
    plot = Plot(height=3.0, columns=len(axes), y="thousand records a second", axes=axes)
    return Results(
        parts={"ingest_scaling": [_SCALING_PLOT, Table(columns=_SCALING, rows=rows), about]},
        plots={"ingest-scaling.png": plot},
    )


def _is_ours(name: str) -> bool:
    return name.startswith("millrace")


def _color(name: str) -> str:
    if _is_ours(name):
        return _OURS
    return _LIMIT if name.startswith("limit") else _PEER
