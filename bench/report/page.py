"""Generated parts of docs/performance.md: tables and plots, the same for the same results.

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- /generated -->``; all
else on the page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.report.results import About, Machine
from sandbox.settings import PROJECT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = PROJECT / "docs/performance.md"
PLOTS = PAGE.parent / "performance"


GENERATED = re.compile(
    r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- /generated -->)", re.DOTALL
)


def about_text(about: About) -> str:
    """When, how and where something was measured."""
    return (
        f"Measured on {about.measured_on} in {about.minutes:.0f} minutes by"
        f" `{about.command}`: {machine_text(about.machine)}. Load of the machine before:"
        f" {about.load_before:.1f}."
    )


def machine_text(machine: Machine) -> str:
    """A machine in a few words."""
    versions = ", ".join(
        f"{name} {number}" for name, number in machine.versions.items()
    )
    return (
        f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB,"
        f" {machine.system}; {versions}"
    )


def new_figure(height: float) -> Figure:
    """A figure of the page's width.

    Args:
        height: Inches.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same results give the same file.
    mpl.rcParams["svg.hashsalt"] = "millrace"
    return Figure(figsize=(9, height), layout="constrained")


def save_plot(figure: Figure, file: Path) -> None:
    """Write a plot that the page shows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, format="svg", metadata={"Date": None})


def with_parts(text: str, parts: Mapping[str, Callable[[], list[str]]]) -> str:
    """A page's text with some of its generated parts made anew, the others as they are.

    Args:
        text: The page.
        parts: What makes the lines of a part, by its name.
    """
    return GENERATED.sub(
        lambda found: (
            found[1] + "\n".join(parts[found[2]]()) + "\n" + found[4]
            if found[2] in parts
            else found[0]
        ),
        text,
    )


def markdown(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """Lines of a table; the first column to the left, numbers to the right."""
    return [
        f"| {' | '.join(head)} |",
        f"|---|{'---:|' * (len(head) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
