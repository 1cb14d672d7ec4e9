"""What the generated parts of docs/performance.md share: the machine in words, and plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.report.results import About, Machine
from sandbox.settings import PROJECT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = PROJECT / "docs/performance.md"
PLOTS = PAGE.parent / "performance"


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
    from matplotlib.figure import Figure

    return Figure(figsize=(9, height), layout="constrained")


def save_plot(figure: Figure, file: Path) -> None:
    """Write a plot that the page shows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # The same results give the same file.
    figure.savefig(file, format="png", metadata={"Software": None})
