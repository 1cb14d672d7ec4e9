"""What was measured of increments, as tables, words and a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.increments.table_use import TableUse
from bench.report.results import About, Axes, Cell, Line, Plot, Results, Spread, Table

LIMIT = 1.5
MIB = 2**20
RATIO = "times the shortest"
_COSTS = {
    "rows of history": 0,
    "full refresh, s": 0,
    "one increment, s": 1,
    RATIO: 2,
    "files opened": 0,
    "MiB of them": 1,
    "rows out of them": 0,
    "MiB read in all": 1,
    "files written": 0,
    "MiB written": 1,
}


@dataclass(frozen=True)
class Increment:
    """One increment of all facts.

    Attributes:
        load: Load average of the machine just before, over a minute.
        seconds: Of `dbt run`, in a process whose JVM is up.
        models: Seconds by model; models of one run share the cores.
        bytes_read: What the JVM read: data, metadata, shuffled rows; None where the system
            does not say.
        tables: What was done to each table (``schema.name``).
    """

    load: float
    seconds: float
    models: Mapping[str, float]
    bytes_read: int | None
    tables: Mapping[str, TableUse]

    def total(self, what: str) -> int:
        """A count of all tables."""
        return sum(int(getattr(use, what)) for use in self.tables.values())


@dataclass(frozen=True)
class History:
    """One length of history.

    Attributes:
        rows: Sales, and as many purchase lines.
        build_seconds: To build its facts from nothing.
        increments: Those that count, in order.
    """

    rows: int
    build_seconds: float
    increments: list[Increment] = field(default_factory=list)

    @property
    def seconds(self) -> list[float]:
        """Of each increment."""
        return [one.seconds for one in self.increments]

    def middle(self, value: Callable[[Increment], float]) -> float:
        """The median of all increments."""
        return median(value(one) for one in self.increments)


def results_of(
    histories: Sequence[History], increment_rows: int, warm_ups: int, about: About
) -> Results:
    """Cost by the length of history, all in all, by model and by table.

    Args:
        histories: From the shortest to the longest.
        increment_rows: New sales of an increment, and as many new purchase lines.
        warm_ups: Increments of each history before those that count.
        about: When, where and how.
    """
    increments = [one for history in histories for one in history.increments]
    loads = [one.load for one in increments]
    counted = (
        f"{len(histories[0].increments)} increments of each history count, after"
        f" {warm_ups} that do not; the load of the machine before each was"
        f" {min(loads):.1f} to {max(loads):.1f}."
    )
    return Results(
        parts={
            "machine": [about, counted],
            "increments": [_costs(histories)],
            "models": [
                _by_history(
                    "seconds of",
                    histories,
                    sorted(increments[0].models),
                    lambda history, name: history.middle(lambda one: one.models[name]),
                )
            ],
            "tables": [
                _by_history(
                    "files opened / written in",
                    histories,
                    sorted({name for one in increments for name in one.tables}),
                    _files_of,
                )
            ],
        },
        plots={"increments.png": _plot(histories, increment_rows)},
    )


def _costs(histories: Sequence[History]) -> Table:
    rows: list[list[Cell]] = []
    for history in histories:
        known = [one.bytes_read for one in history.increments if one.bytes_read is not None]
        rows.append(
            [
                history.rows,
                history.build_seconds,
                Spread.of(history.seconds),
                Spread.of_ratios(history.seconds, histories[0].seconds),
                history.middle(lambda one: one.total("files_read")),
                history.middle(lambda one: one.total("bytes_read") / MIB),
                history.middle(lambda one: one.total("rows_read")),
                median(known) / MIB if known else "unknown",
                history.middle(lambda one: one.total("files_written")),
                history.middle(lambda one: one.total("bytes_written") / MIB),
            ]
        )
    return Table(columns=_COSTS, rows=rows)


def _by_history(
    what: str,
    histories: Sequence[History],
    names: Sequence[str],
    cell: Callable[[History, str], Cell],
) -> Table:
    columns = {what: 0, **{f"{history.rows:,}": 1 for history in histories}}
    rows = [[f"`{name}`", *(cell(each, name) for each in histories)] for name in names]
    return Table(columns=columns, rows=rows)


def _files_of(history: History, name: str) -> Cell:
    uses = [one.tables.get(name, TableUse()) for one in history.increments]
    return [
        round(median(use.files_read for use in uses)),
        round(median(use.files_written for use in uses)),
    ]


def _plot(histories: Sequence[History], increment_rows: int) -> Plot:
    spreads = {history.rows: Spread.of(history.seconds) for history in histories}
    built = Line(
        label="full refresh",
        style="s--",
        color="tab:gray",
        points=[(history.rows, history.build_seconds) for history in histories],
    )
    grown = Line(
        label=f"one increment of {increment_rows:,} rows",
        style="o-",
        points=[(rows, each.median) for rows, each in spreads.items()],
        errors=[(each.median - each.least, each.most - each.median) for each in spreads.values()],
    )
    files = [
        Line(
            label=label,
            style=style,
            color=color,
            points=[(each.rows, each.middle(count)) for each in histories],
        )
        for count, label, style, color in (
            (lambda one: one.total("files_read"), "opened", "o-", "tab:blue"),
            (lambda one: one.total("files_written"), "written", "s--", "tab:gray"),
        )
    ]
    x = "rows of history"
    axes = [
        Axes(lines=[built, grown], x=x, y="seconds", log=True),
        Axes(lines=files, x=x, y="files in one increment", log=True),
    ]
    return Plot(height=3.6, columns=2, axes=axes)
