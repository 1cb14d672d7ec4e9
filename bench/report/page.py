"""Generated parts and plots of docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.report.results import About, Axes, Cell, Plot, Results, Spread, Table
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

PAGE = PROJECT / "docs/performance.md"
PLOTS = PAGE.parent / "performance"


def write_page(results: Results, page: Path = PAGE, plots: Path = PLOTS) -> None:
    """Write results into the page, and the plots next to it."""
    page.write_text(with_results(page.read_text(), results))
    for name, plot in results.plots.items():
        draw(plot, plots / name)


def with_results(text: str, results: Results) -> str:
    """The page's text with the parts replaced that have results."""
    return with_parts(text, {name: _part(blocks) for name, blocks in results.parts.items()})


def _part(blocks: list[Table | About | str]) -> list[str]:
    """Markdown lines; text that follows the metadata continues its paragraph."""
    lines: list[str] = []
    for block, before in zip(blocks, [None, *blocks], strict=False):
        goes_on = isinstance(before, About) or before is None
        lines += [] if goes_on else [""]
        match block:
            case Table():
                lines += table_lines(block)
            case About():
                lines.append(about_text(block))
            case _:
                lines.append(block)
    return lines


def table_lines(table: Table) -> list[str]:
    """A table in Markdown."""
    digits = table.columns.values()
    return markdown(
        list(table.columns),
        ([_shown(*each) for each in zip(row, digits, strict=True)] for row in table.rows),
    )


def _shown(cell: Cell, digits: int) -> str:
    match cell:
        case str():
            return cell
        case int():
            return f"{cell:,}"
        case float():
            return f"{cell:,.{digits}f}"
        case Spread():
            median, *range_ = (
                _shown(each, digits) for each in (cell.median, cell.least, cell.most)
            )
            return f"{median} ({' to '.join(range_)})"
        case _:
            return " / ".join(_shown(each, digits) for each in cell)


def about_text(about: About) -> str:
    """A sentence with the metadata of a measurement."""
    machine = about.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    by = f" by `{about.command}`" if about.command else ""
    text = (
        f"Measured on {about.measured_on} in {about.minutes:.0f} minutes{by}:"
        f" {machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB,"
        f" {machine.system}; {versions}."
    )
    if about.load_before is not None:
        text += f" Load of the machine before: {about.load_before:.1f}."
    return text


def draw(plot: Plot, file: Path) -> None:
    """Draw a plot in the width of the page; the output is deterministic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, plot.height), layout="constrained")
    grid = figure.subplots(
        -(-len(plot.axes) // plot.columns),
        plot.columns,
        squeeze=False,
        sharey=plot.axes[0].kind == "lying bars",
    )
    for axes, drawn in zip(plot.axes, grid.flat, strict=True):
        if axes.kind == "lines":
            _draw_lines(axes, drawn)
        else:
            _draw_bars(axes, drawn)
    if plot.y:
        figure.supylabel(plot.y, fontsize=9)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="png", metadata={"Software": None})


def _draw_lines(axes: Axes, drawn: Any) -> None:
    for line in axes.lines:
        x, y = zip(*line.points, strict=True)
        look = {"fmt": line.style, "color": line.color, "label": line.label or None}
        if line.errors:
            drawn.errorbar(x, y, yerr=list(zip(*line.errors, strict=True)), capsize=3, **look)
        else:
            size = {"markersize": 2} if line.style == "." else {}
            drawn.plot(x, y, look.pop("fmt"), **look, **size)
    if axes.log:
        drawn.set_xscale("log")
    drawn.set_ylim(bottom=0)
    if axes.most is not None:
        drawn.set_xlim(left=0)
        drawn.set_ylim(top=axes.most)
    drawn.set(xlabel=axes.x, ylabel=axes.y)
    drawn.grid(visible=True, alpha=0.3)
    if any(line.label for line in axes.lines):
        drawn.legend()


def _draw_bars(axes: Axes, drawn: Any) -> None:
    lies = axes.kind == "lying bars"
    for line in axes.lines:
        names, lengths = zip(*line.points, strict=True)
        (drawn.barh if lies else drawn.bar)(names, lengths, color=line.color)
    drawn.grid(visible=True, axis="x" if lies else "y", alpha=0.3)
    if axes.x:
        drawn.set_xlabel(axes.x)
    if axes.title:
        drawn.set_title(axes.title, fontsize=9)
        drawn.tick_params(axis="x", labelsize=8)
        for label in drawn.get_xticklabels():
            label.set(rotation=30, horizontalalignment="right")
