"""What was measured of the dashboard's pages, and how the docs show it."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from bench.report.page import PAGE, about_text
from bench.report.results import About, Kept, read_kept
from docs.generate.parts import markdown, with_parts
from sandbox.settings import PROJECT

RESULTS = PROJECT / "bench/results/dashboard.json"
# Seconds of a whole page of which nothing is kept.
LIMIT = 1.0


class Page(Kept):
    """One page; seconds in the order in which they were measured.

    Attributes:
        name: As the folder of its queries.
        tables: Those that it reads and the lake has.
        missing: Those that the lake does not have.
        rows: Of these tables, all together.
        queries: That it asks with the choices it begins with.
        look: To load each table's newest snapshot.
        asked: A look and all of the queries.
        shown: The whole page as Streamlit makes it, of which nothing is kept.
        again: The whole page once more, when no table has a new snapshot.
    """

    name: str
    tables: int
    missing: int
    rows: int
    queries: int
    look: list[float]
    asked: list[float]
    shown: list[float]
    again: list[float]


class Dashboard(Kept):
    """The whole measurement.

    Attributes:
        about: When, where and how.
        versions: Of the packages that read and show.
        pages: Those that have tables, in the dashboard's order.
    """

    about: About
    versions: dict[str, str]
    pages: list[Page]


def slow(dashboard: Dashboard) -> list[Page]:
    """The pages whose median is over the limit."""
    return [page for page in dashboard.pages if median(page.shown) > LIMIT]


def table(dashboard: Dashboard) -> list[str]:
    """One row per page."""
    return markdown(
        [
            "page",
            "tables",
            "rows of them",
            "queries",
            "a look, s",
            "a look and all queries, s",
            "the whole page, s",
            f"times {LIMIT:g} s",
            "the same page again, s",
        ],
        (
            [
                page.name,
                f"{page.tables:,}",
                f"{page.rows:,}",
                f"{page.queries:,}",
                _seconds(page.look),
                _seconds(page.asked),
                _seconds(page.shown),
                f"{median(page.shown) / LIMIT:.2f}",
                _seconds(page.again),
            ]
            for page in dashboard.pages
        ),
    )


def text(dashboard: Dashboard) -> list[str]:
    """What the table is of."""
    times = len(dashboard.pages[0].shown)
    missing = [
        f"{page.missing} of `{page.name}`" for page in dashboard.pages if page.missing
    ]
    versions = ", ".join(
        f"{name} {number}" for name, number in dashboard.versions.items()
    )
    return [
        (
            f"Median / slowest of {times} times, after one that does not count; {versions}."
            + (f" Tables that were not built: {', '.join(missing)}." if missing else "")
        ),
        "",
        about_text(dashboard.about),
    ]


def with_dashboard(page: str, dashboard: Dashboard) -> str:
    """A page's text with its generated part made from results."""
    return with_parts(page, {"dashboard": [*table(dashboard), "", *text(dashboard)]})


def write_page(dashboard: Dashboard, page: Path = PAGE) -> None:
    """Write the generated part of the page."""
    page.write_text(with_dashboard(page.read_text(), dashboard))


def read_dashboard(file: Path) -> Dashboard:
    """Results from their file.

    Raises:
        ConfigurationError: It is missing, or not one.
    """
    return read_kept(file, Dashboard, "make bench-dashboard")


def _seconds(values: list[float]) -> str:
    return f"{median(values):.2f} / {max(values):.2f}"
