"""The results of captured histories, as docs/performance.md shows them: tables and a plot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.report.histories_results import Results, Step, ratios
from bench.report.increments_results import Spread, spread
from bench.report.page import PAGE, PLOTS, about_text, new_figure, save_plot
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

RESULTS = PROJECT / "bench/results/histories.json"
PLOT = PLOTS / "histories.png"
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
            "histories": [*table(results), "", *measured(results)],
            "histories_disturbed": other_table(results),
        },
    )


def measured(results: Results) -> list[str]:
    """What the table is of."""
    loads = [step.load for history in results.histories for step in history.steps]
    rounds = len(results.histories[0].of(results.kinds[0]))
    return [
        (
            f"{results.changes:,} updates an increment, each of another row; {rounds}"
            f" increments of each kind count, after {results.warm_ups} that do not. Load"
            f" before each: {min(loads):.1f} to {max(loads):.1f}."
        ),
        "",
        about_text(results.about),
    ]


def table(results: Results) -> list[str]:
    """One row per history and kind of increment."""
    return markdown(
        [
            "rows",
            "replaces rows by",
            "first build, s",
            "increment, s",
            "times the smallest",
            "what is new, s",
            "write, s",
            "MiB of files opened",
            "files written",
            "MiB written",
        ],
        (
            [
                f"{history.rows:,}",
                kind,
                f"{history.build.seconds:.0f}",
                _spread(spread([s.seconds for s in history.of(kind)]), 1),
                _spread(ratios(results, history, kind), 2),
                *_costs(history.of(kind)),
            ]
            for history in results.histories
            for kind in results.kinds
        ),
    )


def other_table(results: Results) -> list[str]:
    """One row per disturbance: what it costs, and against the full refresh at the end."""
    return markdown(
        [
            "rows",
            "what came",
            "records",
            "seconds",
            "times a full refresh",
            "what is new, s",
            "write, s",
            "MiB of files opened",
            "files written",
            "MiB written",
        ],
        (
            [
                f"{history.rows:,}",
                step.kind,
                f"{step.changes:,}",
                f"{step.seconds:.1f}",
                f"{step.seconds / history.others[-1].seconds:.2f}",
                *_costs([step]),
            ]
            for history in results.histories
            for step in history.others
        ),
    )


def draw(results: Results, file: Path) -> None:
    """Draw seconds and written bytes of an increment over the rows."""
    figure = new_figure(3.6)
    seconds, written = figure.subplots(1, 2)
    rows = [history.rows for history in results.histories]
    for kind, sign, color in zip(
        results.kinds, ("o-", "s--"), ("tab:blue", "tab:gray"), strict=True
    ):
        seconds.plot(
            rows,
            [_median(h.of(kind), lambda s: s.seconds) for h in results.histories],
            sign,
            color=color,
            label=kind,
        )
        written.plot(
            rows,
            [_median(h.of(kind), _mib_written) for h in results.histories],
            sign,
            color=color,
            label=kind,
        )
    seconds.set_ylabel(f"seconds of {results.changes:,} changes")
    written.set_ylabel("MiB written")
    for axes in (seconds, written):
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("rows of the captured table")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()
    save_plot(figure, file)


def _costs(steps: list[Step]) -> list[str]:
    return [
        f"{_median(steps, lambda s: s.find_seconds):.1f}",
        f"{_median(steps, lambda s: s.write_seconds):.1f}",
        f"{_median(steps, _mib_opened):,.1f}",
        f"{_median(steps, _files_written):,.0f}",
        f"{_median(steps, _mib_written):,.1f}",
    ]


def _mib_opened(step: Step) -> float:
    return sum(use.bytes_read for use in step.tables.values()) / MIB


def _mib_written(step: Step) -> float:
    return sum(use.bytes_written for use in step.tables.values()) / MIB


def _files_written(step: Step) -> float:
    return sum(
        use.files_written + use.delete_files_written for use in step.tables.values()
    )


def _median(steps: list[Step], value: Callable[[Step], float]) -> float:
    return median(value(step) for step in steps)


def _spread(values: Spread, digits: int) -> str:
    return (
        f"{values.median:.{digits}f} "
        f"({values.least:.{digits}f} to {values.most:.{digits}f})"
    )
