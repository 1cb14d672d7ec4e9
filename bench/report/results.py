"""Format of results files: tables, text and plots, the same for all benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from spark_ingest.errors import ConfigurationError


class Kept(BaseModel):
    """Base class of the models; unknown keys are rejected."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Machine(Kept):
    """The machine of a measurement.

    Attributes:
        processor: Model name.
        cores: Number of logical cores.
        memory_gib: Memory in GiB.
        system: Operating system and release.
        versions: Versions of Python, Java, Spark, Iceberg and dbt.
    """

    processor: str
    cores: int
    memory_gib: float
    system: str
    versions: dict[str, str]


class About(Kept):
    """Metadata of a measurement.

    Attributes:
        measured_on: The date, ISO 8601.
        minutes: Total duration.
        machine: The machine.
        command: The command line; None if it was not recorded.
        load_before: One-minute load average at the start; None if it was not recorded.
    """

    measured_on: str
    minutes: float
    machine: Machine
    command: str | None = None
    load_before: float | None = None


class Spread(Kept):
    """Summary of repeated measurements."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Median, minimum and maximum of some values."""
        return cls(median=median(values), least=min(values), most=max(values))

    @classmethod
    def of_ratios(cls, values: Sequence[float], smallest: Sequence[float]) -> Spread:
        """Ratios of measurements of the same rounds.

        So a temporarily slow machine does not distort the result.
        """
        pairs = zip(values, smallest, strict=True)
        return cls.of([value / other for value, other in pairs])


# The value of a cell; numbers of a list are shown side by side.
Cell = str | int | float | Spread | list[int | float]


class Table(Kept):
    """A table of results.

    Attributes:
        columns: Number of decimals by heading.
        rows: The rows, with a cell per column.
    """

    columns: dict[str, int]
    rows: list[list[Cell]]

    def column(self, heading: str) -> list[Cell]:
        """The cells of a column."""
        at = list(self.columns).index(heading)
        return [row[at] for row in self.rows]


def number_of(cell: Cell) -> float:
    """The number of a cell: the first of several, or the median of measurements."""
    if isinstance(cell, Spread):
        return cell.median
    return float(cell[0] if isinstance(cell, list) else cell)


class Line(Kept):
    """A line of a plot, or its bars.

    Attributes:
        points: Its points; a text is the name of a bar.
        label: Label in the legend.
        style: Matplotlib format string.
        color: One color, or one per bar.
        errors: Lower and upper error at each point.
    """

    points: list[tuple[float | str, float]]
    label: str = ""
    style: str = "-"
    color: str | list[str] = "tab:blue"
    errors: list[tuple[float, float]] = []


class Axes(Kept):
    """One set of axes of a plot.

    Attributes:
        lines: Its lines.
        x, y, title: Axis labels and title.
        kind: Lines, vertical or horizontal bars.
        log: Whether the horizontal axis is logarithmic.
        most: Upper limit of the vertical axis, with both axes from zero; automatic if None.
    """

    lines: list[Line]
    x: str = ""
    y: str = ""
    title: str = ""
    kind: Literal["lines", "bars", "lying bars"] = "lines"
    log: bool = False
    most: float | None = None


class Plot(Kept):
    """An image file of the page.

    Attributes:
        height: Height in inches.
        axes: The axes, row by row.
        columns: Number of columns.
        y: Shared label of the vertical axes.
    """

    height: float
    axes: list[Axes]
    columns: int
    y: str = ""


class Results(Kept):
    """The results of a benchmark.

    Attributes:
        parts: Content of the generated parts of the page, by name.
        plots: Plots by file name.
    """

    parts: dict[str, list[Table | About | str]] = {}
    plots: dict[str, Plot] = {}

    def updated(self, other: Results) -> Results:
        """These results, updated with newly measured parts and plots."""
        return Results(parts=self.parts | other.parts, plots=self.plots | other.plots)

    def tables(self) -> Iterator[Table]:
        """All tables, in order."""
        for blocks in self.parts.values():
            yield from (block for block in blocks if isinstance(block, Table))

    def table(self, part: str) -> Table:
        """The table of a part."""
        return next(b for b in self.parts[part] if isinstance(b, Table))


_LINE = 100


def write_kept(results: Results, file: Path) -> None:
    """Write results to a file, formatted for readable diffs."""
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
    """Read results from a file.

    Args:
        file: The file.
        command: The command that writes it.

    Raises:
        ConfigurationError: The file is missing or invalid.
    """
    try:
        return Results.model_validate_json(file.read_text())
    except FileNotFoundError as error:
        raise ConfigurationError(f"{file} does not exist: run `{command}` first") from error
    except ValidationError as error:
        raise ConfigurationError(f"{file} has no results of `{command}`: run it again") from error
