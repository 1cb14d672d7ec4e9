"""The results of ingest, as docs/performance.md shows them: tables and plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.report.ingest_results import (
    Case,
    Contest,
    Latencies,
    QuietStreams,
    Results,
    Row,
    Scaling,
)
from bench.report.page import PAGE, PLOTS, about_text, new_figure, save_plot
from docs.generate.parts import markdown, with_parts

if TYPE_CHECKING:
    pass

# In the generated parts: a link leads nowhere while there is no plot.
_CONTEST_PLOT = (
    "![Records a second and CPU seconds for a million records, by contestant]"
    "(performance/ingest.png)"
)
_SCALING_PLOT = (
    "![Records a second by records, partitions, executors, record size and fields]"
    "(performance/ingest-scaling.png)"
)
_OURS, _LIMIT, _PEER = "tab:blue", "tab:gray", "tab:orange"


def write_page(results: Results, page: Path = PAGE, plots: Path = PLOTS) -> None:
    """Write what was measured into the page, and its plots beside it."""
    page.write_text(with_results(page.read_text(), results))
    if results.contest:
        draw_contest(results.contest, plots / "ingest.png")
    if results.scaling:
        draw_scaling(results.scaling, plots / "ingest-scaling.png")


def with_results(text: str, results: Results) -> str:
    """A page's text with those parts replaced of which there are results."""
    parts: dict[str, list[str]] = {}
    if contest := results.contest:
        parts["ingest"] = [_CONTEST_PLOT, "", *contest_table(contest)]
        parts["ingest_machine"] = [
            about_text(contest.about),
            _load_text(contest),
        ]
    if scaling := results.scaling:
        parts["ingest_scaling"] = [
            _SCALING_PLOT,
            "",
            *scaling_table(scaling),
            "",
            about_text(scaling.about),
        ]
    if latency := results.latency:
        parts["ingest_latency"] = [
            *latency_table(latency),
            "",
            about_text(latency.about),
        ]
    if quiet := results.quiet:
        parts["ingest_quiet"] = [
            *quiet_table(quiet),
            "",
            about_text(quiet.about),
        ]
    return with_parts(text, parts)


def table(part: Contest | Scaling | Latencies | QuietStreams) -> list[str]:
    """What was measured of one part, as a table."""
    match part:
        case Contest():
            return contest_table(part)
        case Scaling():
            return scaling_table(part)
        case Latencies():
            return latency_table(part)
        case QuietStreams():
            return quiet_table(part)


def contest_table(contest: Contest) -> list[str]:
    """A row for each contestant, the fastest first."""
    rows = sorted(contest.rows, key=lambda row: -row.records_per_second)
    return markdown(
        [
            "contestant",
            "records/s",
            "MB/s",
            "CPU s per million",
            "peak RSS, MiB",
            "times the careless job",
            "loses",
        ],
        (
            [
                f"**{row.name}**" if _is_ours(row) else row.name,
                f"{row.records_per_second:,.0f}",
                f"{row.mb_per_second:,.1f}",
                f"{row.cpu_seconds_per_million:.2f}",
                f"{row.peak_rss_mb:,.0f}",
                "" if row.times_careless is None else f"{row.times_careless:.2f}",
                row.loses,
            ]
            for row in rows
        ),
    )


def scaling_table(scaling: Scaling) -> list[str]:
    """A row for each case."""
    return markdown(
        [
            "what changes",
            "case",
            "bytes",
            "records/s",
            "MB/s",
            "CPU s per million",
            "MB",
        ],
        (
            [
                case.series,
                case.name,
                f"{case.load.value_bytes:,.0f}",
                f"{case.records_per_second:,.0f}",
                f"{case.mb_per_second:,.1f}",
                f"{case.cpu_seconds_per_million:.2f}",
                f"{case.run.peak_rss_mb:,.0f}",
            ]
            for cases in _series(scaling).values()
            for case in cases
        ),
    )


def latency_table(latency: Latencies) -> list[str]:
    """A row for each setting of `--every`."""
    return markdown(
        ["`--every`", "p50, s", "p95, s", "p99, s", "records", "commits", "cores"],
        (
            [
                f"`{row.every}`",
                f"{row.p50:.2f}",
                f"{row.p95:.2f}",
                f"{row.p99:.2f}",
                f"{row.records:,}",
                f"{row.snapshots:,}",
                f"{row.cores:.2f}",
            ]
            for row in latency.rows
        ),
    )


def quiet_table(quiet: QuietStreams) -> list[str]:
    """A row for each number of streams."""
    return markdown(
        [
            "streams",
            "`--every`",
            "records/s of each",
            "CPU s a minute",
            "RSS, MiB",
            "records behind",
        ],
        (
            [
                f"{row.streams}",
                f"`{row.every}`",
                f"{row.records_per_second:g}",
                f"{row.cpu_seconds_per_minute:.1f}",
                f"{row.rss_mb:,.0f}",
                f"{row.behind:,}",
            ]
            for row in quiet.rows
        ),
    )


def draw_contest(contest: Contest, file: Path) -> None:
    """Draw rates and CPU seconds, one bar for each contestant."""
    figure = new_figure(3.2)
    speed, cost = figure.subplots(1, 2, sharey=True)
    rows = sorted(contest.rows, key=lambda row: row.records_per_second)
    names = [row.name for row in rows]
    colors = [_color(row) for row in rows]
    speed.barh(names, [row.records_per_second / 1000 for row in rows], color=colors)
    speed.set_xlabel("thousand records a second")
    cost.barh(names, [row.cpu_seconds_per_million for row in rows], color=colors)
    cost.set_xlabel("CPU seconds for a million records")
    for axes in (speed, cost):
        axes.grid(visible=True, axis="x", alpha=0.3)
    save_plot(figure, file)


def draw_scaling(scaling: Scaling, file: Path) -> None:
    """Draw the rate of each case, one plot for each series."""
    series = _series(scaling)
    figure = new_figure(3.0)
    plots = figure.subplots(1, len(series), squeeze=False)[0]
    for axes, (name, cases) in zip(plots, series.items(), strict=True):
        axes.bar(
            [case.name for case in cases],
            [case.records_per_second / 1000 for case in cases],
            color=[_PEER if "careless" in case.name else _OURS for case in cases],
        )
        axes.set_title(name, fontsize=9)
        axes.tick_params(axis="x", labelsize=8)
        for label in axes.get_xticklabels():
            label.set(rotation=30, horizontalalignment="right")
        axes.grid(visible=True, axis="y", alpha=0.3)
    figure.supylabel("thousand records a second", fontsize=9)
    save_plot(figure, file)


def _series(scaling: Scaling) -> dict[str, list[Case]]:
    """The cases by what changes: those that share a topic were measured together."""
    found: dict[str, list[Case]] = {}
    for case in scaling.cases:
        found.setdefault(case.series, []).append(case)
    return found


def _is_ours(row: Row) -> bool:
    return row.name.startswith("millrace")


def _color(row: Row) -> str:
    if _is_ours(row):
        return _OURS
    return _LIMIT if row.name.startswith("limit") else _PEER


def _load_text(contest: Contest) -> str:
    load = contest.load
    repeats = len(contest.rows[0].runs)
    loads = [run.load for row in contest.rows for run in row.runs]
    return (
        f"{load.records:,} records of {load.fields} fields and {load.value_bytes:.0f} bytes in"
        f" {load.partitions} partitions; {load.bad:,} of them are bad, {load.tombstones:,} are"
        f" tombstones. Medians of {repeats} runs each; load before a run {min(loads):.1f} to"
        f" {max(loads):.1f}, most of it from the run before."
    )
