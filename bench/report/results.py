"""Results as files keep them: tables, words and plots, the same of all benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_ingest.errors import ConfigurationError


class Kept(BaseModel):
    """A part of results; a file with other keys is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(Kept):
    """Where it was measured.

    Attributes:
        processor: As the system names it.
        cores: Logical ones.
        memory_gib: Of the machine.
        system: Operating system and its release.
        versions: Of Python, Java, Spark, Iceberg and dbt.
    """

    processor: str
    cores: int
    memory_gib: float
    system: str
    versions: dict[str, str]


class About(Kept):
    """When, where and how one part was measured.

    Attributes:
        measured_on: The day, ISO.
        minutes: What it took, all in all.
        machine: Where.
        command: As it can be typed again; None where that was not kept.
        load_before: Load average of the machine when it began, over a minute; the same.
    """

    measured_on: str
    minutes: float
    machine: Machine
    command: str | None = None
    load_before: float | None = None


class Spread(Kept):
    """Several measurements of one thing."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The median of some values, and the outermost."""
        return cls(median=median(values), least=min(values), most=max(values))

    @classmethod
    def of_ratios(cls, values: Sequence[float], smallest: Sequence[float]) -> Spread:
        """How many times as much each is as the one of the same round.

        A machine that was slow for a while says nothing then.
        """
        pairs = zip(values, smallest, strict=True)
        return cls.of([value / other for value, other in pairs])


# What a cell may hold; a list is of numbers that are shown beside each other.
Cell = str | int | float | Spread | list[int | float]


class Table(Kept):
    """What was measured, in rows.

    Attributes:
        columns: Digits behind the point of the numbers that are not whole, by the heading.
        rows: As many cells each as there are columns.
    """

    columns: dict[str, int]
    rows: list[list[Cell]]

    def column(self, heading: str) -> list[Cell]:
        """The cells of a column."""
        at = list(self.columns).index(heading)
        return [row[at] for row in self.rows]


def number_of(cell: Cell) -> float:
    """The number of a cell, of several the first, of measurements the median."""
    if isinstance(cell, Spread):
        return cell.median
    return float(cell[0] if isinstance(cell, list) else cell)


class Line(Kept):
    """A line of a plot, or its bars.

    Attributes:
        points: Where it goes; a text names a bar.
        label: In the legend.
        style: As Matplotlib writes it.
        color: Of all, or of each bar.
        errors: How much less and more there was, at each point.
    """

    points: list[tuple[float | str, float]]
    label: str = ""
    style: str = "-"
    color: str | list[str] = "tab:blue"
    errors: list[tuple[float, float]] = []


class Axes(Kept):
    """One picture of a plot.

    Attributes:
        lines: In it.
        x, y, title: What is written beside it.
        kind: Lines, or bars that stand or lie.
        log: Whether the horizontal axis is logarithmic.
        most: Where the vertical axis ends when all begins at zero; by the values without.
    """

    lines: list[Line]
    x: str = ""
    y: str = ""
    title: str = ""
    kind: Literal["lines", "bars", "lying bars"] = "lines"
    log: bool = False
    most: float | None = None


class Plot(Kept):
    """A file that the page shows.

    Attributes:
        height: Inches.
        axes: In the order of reading.
        columns: Beside each other.
        y: What is written beside all.
    """

    height: float
    axes: list[Axes]
    columns: int
    y: str = ""


class Results(Kept):
    """What one benchmark measured.

    Attributes:
        parts: What stands in the generated parts of the page, by their names.
        plots: By the names of their files.
    """

    parts: dict[str, list[Table | About | str]] = {}
    plots: dict[str, Plot] = {}

    def updated(self, other: Results) -> Results:
        """These with those parts and plots replaced that were measured anew."""
        return Results(parts=self.parts | other.parts, plots=self.plots | other.plots)

    def tables(self) -> Iterator[Table]:
        """All of them, in order."""
        for blocks in self.parts.values():
            yield from (block for block in blocks if isinstance(block, Table))

    def table(self, part: str) -> Table:
        """The table of a part."""
        return next(b for b in self.parts[part] if isinstance(b, Table))


_LINE = 100


def write_kept(results: Results, file: Path) -> None:
    """Write results to their file, in lines that a diff can show."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = _lines(results.model_dump(mode="json", exclude_defaults=True))
    file.write_text("\n".join(lines) + "\n")


def _lines(value: Any) -> list[str]:
    """JSON, indented; entries that fit on a line share it."""
    if not isinstance(value, dict | list):
        rounded = round(value, 6) if isinstance(value, float) else value
        return [json.dumps(rounded, ensure_ascii=False)]
    entries = (
        [(f"{json.dumps(key)}: ", item) for key, item in value.items()]
        if isinstance(value, dict)
        else [("", item) for item in value]
    )
    found: list[str] = []
    is_short = False
    for number, (name, item) in enumerate(entries, 1):
        first, *more = _lines(item)
        entry = [name + first, *more]
        entry[-1] += "," if number < len(entries) else ""
        if is_short and not more and len(found[-1]) + len(entry[0]) < _LINE:
            found[-1] += f" {entry[0]}"
        else:
            found += entry
        is_short = not more
    begin, end = ("{", "}") if isinstance(value, dict) else ("[", "]")
    if len(found) <= 1:
        return ["".join([begin, *found, end])]
    return [begin, *(f" {line}" for line in found), end]


def read_kept(file: Path, command: str) -> Results:
    """Results from their file.

    Args:
        file: Where they are.
        command: What writes it.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    try:
        return Results.model_validate_json(file.read_text())
    except FileNotFoundError as error:
        raise ConfigurationError(f"{file} does not exist: run `{command}` first") from error
    except ValidationError as error:
        raise ConfigurationError(f"{file} holds no results of `{command}`: run it again") from error
