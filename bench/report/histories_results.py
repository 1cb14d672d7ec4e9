"""What was measured of captured histories, as a file keeps it, and the ratios of it."""

from __future__ import annotations

from pathlib import Path

from bench.increments.table_use import TableUse
from bench.report.increments_results import Spread, spread
from bench.report.results import About, Kept, read_kept

LIMIT = 2.0


class Step(Kept):
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
    tables: dict[str, TableUse]


class History(Kept):
    """One size of the captured table.

    Attributes:
        rows: Of the table, each with its version that holds.
        fill_seconds: To make its snapshot in bronze.
        files: Of the versions that hold, after the first build.
        bytes: Of those.
        build: The first build.
        steps: Increments that count, in order.
        others: What came behind them, in order.
    """

    rows: int
    fill_seconds: float
    files: int
    bytes: int
    build: Step
    steps: list[Step]
    others: list[Step]

    def of(self, kind: str) -> list[Step]:
        """The increments of a kind, in order."""
        return [step for step in self.steps if step.kind == kind]


class Results(Kept):
    """One run of the benchmark.

    Attributes:
        about: When, where and how.
        changes: New updates of an increment.
        warm_ups: Increments of each history before those that count.
        kinds: Of increments, in their order; the last is how the project writes.
        histories: From the smallest to the largest.
    """

    about: About
    changes: int
    warm_ups: int
    kinds: list[str]
    histories: list[History]


def ratios(results: Results, history: History, kind: str) -> Spread:
    """How many times longer an increment takes than on the smallest history.

    Increments of one round are compared with each other.
    """
    return spread(
        [
            step.seconds / smallest.seconds
            for smallest, step in zip(
                results.histories[0].of(kind), history.of(kind), strict=True
            )
        ]
    )


def is_flat(results: Results) -> bool:
    """Whether a usual increment costs at most ``LIMIT`` times that of the smallest."""
    return all(
        ratios(results, history, results.kinds[-1]).median <= LIMIT
        for history in results.histories
    )


def read_results(file: Path) -> Results:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Results, "make bench-histories")
