"""When and on what something was measured, and pages and plots made of results."""

from __future__ import annotations

from pathlib import Path

from bench.report.page import draw
from bench.report.results import About, Machine, Results

MACHINE = Machine(
    processor="A processor", cores=2, memory_gib=16, system="Linux 6", versions={"Spark": "4"}
)  # fmt: skip


def about(bench: str, minutes: float = 12.3) -> About:
    """A run of a benchmark."""
    return About(
        measured_on="2026-01-02",
        minutes=minutes,
        command=f"python -m bench.{bench}",
        machine=MACHINE,
        load_before=0.1,
    )


def page_of(*parts: str) -> str:
    """A page with these generated parts, and what people wrote around them."""
    generated = [f"<!-- generated: {part} -->\nold\n<!-- /generated -->\n" for part in parts]
    return "Before.\n" + "Between.\n".join(generated) + "After.\n"


def drawn_twice(results: Results, folder: Path) -> tuple[bytes, bytes]:
    """The plot of results, twice."""
    (plot,) = results.plots.values()
    files = [folder / name for name in ("a.png", "b.png")]
    for file in files:
        draw(plot, file)
    return files[0].read_bytes(), files[1].read_bytes()
