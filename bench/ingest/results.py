"""What was measured of ingest, as tables, words and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from bench.ingest.load import Sent
from bench.report.results import About, Axes, Cell, Line, Plot, Results, Table

CARELESS = "careless spark job"
_CONTEST = {
    "contestant": 0,
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
# In the generated parts: a link leads nowhere while there is no plot.
_CONTEST_PLOT = (
    "![Records a second and CPU seconds for a million records, by contestant]"
    "(performance/ingest.png)"
)
_SCALING_PLOT = (
    "![Records a second by records, partitions, executors, record size and fields]"
    "(performance/ingest-scaling.png)"
)
_OURS, _LIMIT, _PEER = "tab:blue", "tab:gray", "tab:orange"


@dataclass(frozen=True)
class Run:
    """One run of one contestant.

    Attributes:
        records: That it read.
        seconds: From the first read to the last record that a reader can see.
        cpu_seconds: User and system time of all its processes in that time.
        peak_rss_mb: The most memory that they had together, MiB.
        load: Load average of the machine before it, over a minute.
        loses: What it did not keep.
    """

    records: int
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    load: float
    loses: str

    @property
    def rate(self) -> float:
        """Records in a second."""
        return self.records / self.seconds

    @property
    def cpu_seconds_per_million(self) -> float:
        """CPU seconds for a million records."""
        return self.cpu_seconds / self.records * 1e6


@dataclass(frozen=True)
class Load:
    """What was sent.

    Attributes:
        sent: All of it.
        fields: Of the newer schema.
        partitions: Of the topic.
    """

    sent: Sent
    fields: int
    partitions: int

    @property
    def value_bytes(self) -> float:
        """Mean bytes of a framed value."""
        return round(self.sent.value_bytes / self.sent.records, 1)


@dataclass(frozen=True)
class Case:
    """One measurement of a series, such as a number of partitions.

    Attributes:
        series: Which.
        name: Its place in it.
        load: What was sent.
        run: What it took.
    """

    series: str
    name: str
    load: Load
    run: Run


def contest(runs: Mapping[str, Sequence[Run]], load: Load, about: About) -> Results:
    """A row for each contestant, the fastest first: medians, and what it loses.

    Its rate is compared with the careless job's, runs of one round with each other, so that a
    machine that was slow for a while says nothing.
    """
    rows = sorted(
        (_row(name, its, runs.get(CARELESS), load) for name, its in runs.items()),
        key=lambda row: -float(str(row[1])),
    )
    names = [str(row[0]).strip("*") for row in rows]
    loads = [run.load for its in runs.values() for run in its]
    sent, repeats = load.sent, len(next(iter(runs.values())))
    said = (
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
            "ingest": [_CONTEST_PLOT, Table(columns=_CONTEST, rows=rows)],
            "ingest_machine": [about, said],
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
    """A row for each case, those of a series together; a picture for each series."""
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
