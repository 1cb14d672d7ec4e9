"""When and on what something was measured, for pages made of results."""

from __future__ import annotations

from bench.report.results import About, Machine

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
