"""The results of the increments, as docs/performance.md shows them: tables and a plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.report.increments_results import (
    History,
    Increment,
    Results,
    Spread,
    ratios,
    spread,
)
from bench.report.page import PAGE, PLOTS, machine_text, new_figure, save_plot
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

RESULTS = PROJECT / "bench/results/increments.json"
PLOT = PLOTS / "increments.png"
MIB = 2**20


def write_page(results: Results, page: Path = PAGE, plot: Path = PLOT) -> None:
    """Rewrite the page's generated parts and the plot."""
    page.write_text(with_results(page.read_text(), results))
    draw(results, plot)


def with_results(text: str, results: Results) -> str:
    """A page's text with its generated parts made from results."""
    return with_parts(
        text,
        {
            "machine": machine(results),
            "increments": table(results),
            "models": model_table(results),
            "tables": file_table(results),
        },
    )


def machine(results: Results) -> list[str]:
    """Where, when and how it was measured."""
    loads = [i.load for history in results.histories for i in history.increments]
    rounds = len(results.histories[0].increments)
    measured = (
        f"Measured on {results.measured_on} in {results.minutes:.0f} minutes: "
        f"{machine_text(results.machine)}."
    )
    counted = (
        f"{rounds} increments of each history count, after {results.warm_ups} that do not; "
        f"the load of the machine before each was {min(loads):.1f} to {max(loads):.1f}."
    )
    return [measured, counted]


def table(results: Results) -> list[str]:
    """One row per history: what an increment costs, and what it is compared with."""
    return markdown(
        [
            "rows of history",
            "full refresh, s",
            "one increment, s",
            "times the shortest",
            "files opened",
            "MiB of them",
            "rows out of them",
            "MiB read in all",
            "files written",
            "MiB written",
        ],
        (
            [
                f"{history.rows:,}",
                f"{history.build.seconds:.0f}",
                _spread(spread([i.seconds for i in history.increments]), 1),
                _spread(ratios(results, history.rows), 2),
                _middle(history, lambda i: _sum(i, "files_read"), 0),
                _middle(history, lambda i: _sum(i, "bytes_read") / MIB, 1),
                _middle(history, lambda i: _sum(i, "rows_read"), 0),
                _read_in_all(history),
                _middle(history, lambda i: _sum(i, "files_written"), 0),
                _middle(history, lambda i: _sum(i, "bytes_written") / MIB, 1),
            ]
            for history in results.histories
        ),
    )


def model_table(results: Results) -> list[str]:
    """One row per model: its median seconds in an increment, on each history."""
    names = sorted(results.histories[0].increments[0].models)
    return markdown(
        ["seconds of", *(f"{history.rows:,}" for history in results.histories)],
        (
            [
                f"`{name}`",
                *(
                    _middle(history, _of_model(name), 1)
                    for history in results.histories
                ),
            ]
            for name in names
        ),
    )


def file_table(results: Results) -> list[str]:
    """One row per table: files opened and written in an increment, on each history."""
    names = sorted(
        {
            name
            for history in results.histories
            for increment in history.increments
            for name in increment.tables
        }
    )
    return markdown(
        [
            "files opened / written in",
            *(f"{history.rows:,}" for history in results.histories),
        ],
        (
            [
                f"`{name}`",
                *(
                    _middle(history, _of_table(name, "files_read"), 0)
                    + " / "
                    + _middle(history, _of_table(name, "files_written"), 0)
                    for history in results.histories
                ),
            ]
            for name in names
        ),
    )


def draw(results: Results, file: Path) -> None:
    """Draw seconds and files over the length of history."""
    figure = new_figure(3.6)
    seconds, files = figure.subplots(1, 2)
    rows = [history.rows for history in results.histories]
    spreads = [
        spread([i.seconds for i in history.increments]) for history in results.histories
    ]
    seconds.plot(
        rows,
        [history.build.seconds for history in results.histories],
        "s--",
        color="tab:gray",
        label="full refresh",
    )
    seconds.errorbar(
        rows,
        [each.median for each in spreads],
        yerr=[
            [each.median - each.least for each in spreads],
            [each.most - each.median for each in spreads],
        ],
        fmt="o-",
        capsize=3,
        color="tab:blue",
        label=f"one increment of {results.increment_rows:,} rows",
    )
    seconds.set_ylabel("seconds")
    for what, sign, color in (
        ("files_read", "o-", "tab:blue"),
        ("files_written", "s--", "tab:gray"),
    ):
        files.plot(
            rows,
            [
                median(_sum(i, what) for i in history.increments)
                for history in results.histories
            ],
            sign,
            color=color,
            label="opened" if what == "files_read" else "written",
        )
    files.set_ylabel("files in one increment")
    for axes in (seconds, files):
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rows of history")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    save_plot(figure, file)


def _sum(increment: Increment, what: str) -> int:
    return sum(int(getattr(use, what)) for use in increment.tables.values())


def _of_model(name: str) -> Callable[[Increment], float]:
    return lambda i: i.models[name].seconds


def _of_table(name: str, what: str) -> Callable[[Increment], float]:
    return lambda i: float(getattr(i.tables[name], what)) if name in i.tables else 0.0


def _read_in_all(history: History) -> str:
    known = [i.bytes_read for i in history.increments if i.bytes_read is not None]
    return f"{median(known) / MIB:,.1f}" if known else "unknown"


def _middle(history: History, value: Callable[[Increment], float], digits: int) -> str:
    return f"{median(value(i) for i in history.increments):,.{digits}f}"


def _spread(values: Spread, digits: int) -> str:
    return (
        f"{values.median:.{digits}f} "
        f"({values.least:.{digits}f} to {values.most:.{digits}f})"
    )
