"""What was measured of captured histories, as tables, words and a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.increments.table_use import TableUse
from bench.report.results import About, Axes, Cell, Line, Plot, Results, Spread, Table

MIB = 2**20
RATIO, LIMIT = "times the smallest", 2.0
# What rebuilds a table reads the same; the rest is how much two runs differ.
DISTURBED_RATIO, DISTURBED_LIMIT = "times a full refresh", 1.2
# As Iceberg names them: of increments, in their order; the last is how the project writes.
COPY_ON_WRITE, MERGE_ON_READ = KINDS = ("copy-on-write", "merge-on-read")
_COSTS = {
    "what is new, s": 1,
    "write, s": 1,
    "MiB of files opened": 1,
    "files written": 0,
    "MiB written": 1,
}
_USUAL = {
    "rows": 0,
    "replaces rows by": 0,
    "first build, s": 0,
    "increment, s": 1,
    RATIO: 2,
    **_COSTS,
}
_DISTURBED = {
    "rows": 0,
    "what came": 0,
    "records": 0,
    "seconds": 1,
    DISTURBED_RATIO: 2,
    **_COSTS,
}


@dataclass(frozen=True)
class Step:
    """One run of dbt on a history.

    Attributes:
        kind: What came before it, or how the table replaces rows.
        changes: Records that it read.
        load: Load average of the machine just before, over a minute.
        seconds: Of the whole run, in a process whose JVM is up.
        find_seconds: Of the query that asks what the new changes bring.
        write_seconds: Of the statement that makes the versions and writes them.
        tables: What was done to each table (``schema.name``).
    """

    kind: str
    changes: int
    load: float
    seconds: float
    find_seconds: float
    write_seconds: float
    tables: Mapping[str, TableUse]

    @property
    def mib_opened(self) -> float:
        """Of all files that it opened."""
        return sum(use.bytes_read for use in self.tables.values()) / MIB

    @property
    def mib_written(self) -> float:
        """Of all files that it wrote."""
        return sum(use.bytes_written for use in self.tables.values()) / MIB

    @property
    def files_written(self) -> int:
        """Those of deletes among them."""
        uses = self.tables.values()
        return sum(use.files_written + use.delete_files_written for use in uses)


@dataclass(frozen=True)
class History:
    """One size of the captured table.

    Attributes:
        rows: Rows of the table, each with one current version.
        build_seconds: Of the first build.
        steps: Increments that count, in order.
        others: What came behind them, in order.
    """

    rows: int
    build_seconds: float
    steps: list[Step] = field(default_factory=list)
    others: list[Step] = field(default_factory=list)

    def of(self, kind: str) -> list[Step]:
        """The increments of a kind, in order."""
        return [step for step in self.steps if step.kind == kind]


def results_of(histories: Sequence[History], changes: int, warm_ups: int, about: About) -> Results:
    """Cost by the rows of the table, and what it costs to be disturbed.

    Args:
        histories: From the smallest to the largest.
        changes: New updates of an increment.
        warm_ups: Increments of each history before those that count.
        about: When, where and how.
    """
    loads = [step.load for history in histories for step in history.steps]
    summary = (
        f"{changes:,} updates an increment, each of another row;"
        f" {len(histories[0].of(KINDS[0]))} increments of each kind count, after"
        f" {warm_ups} that do not. Load before each: {min(loads):.1f} to {max(loads):.1f}."
    )
    usual = [_usual(history, histories[0], kind) for history in histories for kind in KINDS]
    # Against the full refresh, which is the last of them.
    others: list[list[Cell]] = [
        [
            *(history.rows, step.kind, step.changes, step.seconds),
            step.seconds / history.others[-1].seconds,
            *_costs([step]),
        ]
        for history in histories
        for step in history.others
    ]
    return Results(
        parts={
            "histories": [Table(columns=_USUAL, rows=usual), summary, about],
            "histories_disturbed": [Table(columns=_DISTURBED, rows=others)],
        },
        plots={"histories.png": _plot(histories, changes)},
    )


def _usual(history: History, smallest: History, kind: str) -> list[Cell]:
    seconds, least = ([step.seconds for step in each.of(kind)] for each in (history, smallest))
    return [
        *(history.rows, kind, history.build_seconds),
        *(Spread.of(seconds), Spread.of_ratios(seconds, least)),
        *_costs(history.of(kind)),
    ]


def _costs(steps: Sequence[Step]) -> list[Cell]:
    return [
        median(step.find_seconds for step in steps),
        median(step.write_seconds for step in steps),
        median(step.mib_opened for step in steps),
        median(step.files_written for step in steps),
        median(step.mib_written for step in steps),
    ]


def _plot(histories: Sequence[History], changes: int) -> Plot:
    def picture(y: str, value: Callable[[Step], float]) -> Axes:
        lines = [
            Line(
                label=kind,
                style=style,
                color=color,
                points=[(h.rows, median(map(value, h.of(kind)))) for h in histories],
            )
            for kind, style, color in zip(
                KINDS, ("o-", "s--"), ("tab:blue", "tab:gray"), strict=True
            )
        ]
        return Axes(lines=lines, x="rows of the captured table", y=y, log=True)

    axes = [
        picture(f"seconds of {changes:,} changes", lambda step: step.seconds),
        picture("MiB written", lambda step: step.mib_written),
    ]
    return Plot(height=3.6, columns=2, axes=axes)
