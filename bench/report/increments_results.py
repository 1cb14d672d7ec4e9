"""What was measured, as a file keeps it, and the ratios that follow from it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.increments.table_use import TableUse
from bench.report.results import Kept, Machine, read_kept

LIMIT = 1.5


class ModelTime(Kept):
    """Seconds of one model in one run; models of one run share the cores.

    Attributes:
        compile_seconds: Until its SQL is there: finding what is new is in it.
        execute_seconds: Running it, and noting how far it has read.
    """

    compile_seconds: float = 0.0
    execute_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.compile_seconds + self.execute_seconds


class Build(Kept):
    """Facts built from a whole history.

    Attributes:
        seconds: Of `dbt build`.
        models: Seconds by model.
    """

    seconds: float
    models: dict[str, ModelTime]


class Increment(Kept):
    """One increment of all facts.

    Attributes:
        number: Which increment of its lake it was, from 1.
        load: Load average of the machine just before, over a minute.
        seconds: Of `dbt run`, in a process whose JVM is up.
        models_seconds: From the first model's beginning to the last one's end.
        models: Seconds by model.
        bytes_read: What the JVM read: data, metadata, shuffled rows; None where the system
            does not say.
        tables: What was done to each table (``schema.name``).
    """

    number: int
    load: float
    seconds: float
    models_seconds: float
    models: dict[str, ModelTime]
    bytes_read: int | None
    tables: dict[str, TableUse]


class History(Kept):
    """One length of history.

    Attributes:
        rows: Sales, and as many purchase lines.
        fill_seconds: To make its bronze tables.
        build: Its facts built from nothing.
        increments: Those that count, in order.
    """

    rows: int
    fill_seconds: float
    build: Build
    increments: list[Increment]


class Results(Kept):
    """One run of the benchmark.

    Attributes:
        measured_on: The day, ISO.
        minutes: What the run took, all in all.
        machine: Where.
        increment_rows: New sales of an increment, and as many new purchase lines.
        day_rows: Rows of a day.
        warm_ups: Increments of each lake before those that count.
        histories: From the shortest to the longest.
    """

    measured_on: str
    minutes: float
    machine: Machine
    increment_rows: int
    day_rows: int
    warm_ups: int
    histories: list[History]


class Spread(Kept):
    """Several measurements of one thing."""

    median: float
    least: float
    most: float


def spread(values: list[float]) -> Spread:
    """The median of some values, and the outermost."""
    return Spread(median=median(values), least=min(values), most=max(values))


def ratios(results: Results, rows: int) -> Spread:
    """How many times longer an increment takes on a history than on the shortest one.

    Increments of one round are compared with each other, so that a machine that was slow
    for a while says nothing.
    """
    first = results.histories[0]
    other = next(history for history in results.histories if history.rows == rows)
    return spread(
        [
            increment.seconds / shortest.seconds
            for shortest, increment in zip(
                first.increments, other.increments, strict=True
            )
        ]
    )


def is_flat(results: Results) -> bool:
    """Whether an increment costs the same, within ``LIMIT``, on all histories."""
    return all(
        ratios(results, history.rows).median <= LIMIT for history in results.histories
    )


def read_results(file: Path) -> Results:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Results, "make bench-increments")
