"""What a page of the dashboard costs: a look at its tables, its queries, the page as shown.

::

    python -m bench.dashboard                  # each page ten times
    python -m bench.dashboard --times 1        # does it work?
    python -m bench.dashboard --write-docs     # and put the results into the docs
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Annotated, Any
from unittest.mock import patch

import pyarrow as pa
import typer
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table as LakeTable

from bench.report.machine import Measurement
from bench.report.results import About, Cell, Results, Table
from bench.run import Benchmark, beyond
from dashboard import queries
from dashboard.lake import LakeIsEmpty, Look, look_at, open_catalog
from dashboard.queries import Query, Value
from spark_ingest.errors import ConfigurationError, MillraceError

PACKAGES = {"DuckDB": "duckdb", "PyIceberg": "pyiceberg", "Streamlit": "streamlit"}
# Seconds of a whole page of which nothing is kept.
LIMIT = 1.0
WHOLE = "the whole page, s"
_COLUMNS = {
    "page": 0,
    "tables": 0,
    "rows of them": 0,
    "queries": 0,
    "a look, s": 2,
    "a look and all queries, s": 2,
    WHOLE: 2,
    f"times {LIMIT:g} s": 2,
    "the same page again, s": 2,
}
_PAGE_SECONDS = 120

BENCHMARK = Benchmark(
    "dashboard",
    "make bench-dashboard",
    beyond=lambda results: beyond(results.table("dashboard"), WHOLE, LIMIT),
)


class PageFailed(MillraceError):
    """A page shows an exception where it should show a figure."""


def dashboard(
    times: Annotated[int, typer.Option(min=1, help="How often each page.")] = 10,
) -> Iterator[Results]:
    """Measure the pages on the lake that the dashboard reads; a page without tables is left out.

    The pages take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 within the limit, 1 a page takes longer or fails, 2 wrong use.
    """
    if find_spec("streamlit") is None:
        raise ConfigurationError("no Streamlit: `make bench-dashboard` installs it")
    # Outside of its server Streamlit warns of that in each run.
    logging.disable(logging.WARNING)
    try:
        catalog = open_catalog()
    except LakeIsEmpty as error:
        raise ConfigurationError(str(error)) from error
    measurement = Measurement(BENCHMARK.name)
    shown = [page for page in map(Page, _pages()) if page.find(catalog)]
    if not shown:
        raise ConfigurationError("the lake has no table of any page: `make demo`")
    for _ in range(times):
        for page in shown:
            page.measure(catalog)
    versions = {name: version(package) for name, package in PACKAGES.items()}
    yield results_of(shown, versions, measurement.about())


def results_of(pages: list[Page], versions: dict[str, str], about: About) -> Results:
    """The results of some pages, each measured as often as the others."""
    missing = [f"{page.missing} of `{page.name}`" for page in pages if page.missing]
    summary = (
        f"Median / slowest of {len(pages[0].shown)} times, after one that does not count;"
        f" {', '.join(f'{name} {number}' for name, number in versions.items())}."
    ) + (f" Tables that were not built: {', '.join(missing)}." if missing else "")
    table = Table(columns=_COLUMNS, rows=[page.row() for page in pages])
    return Results(parts={"dashboard": [table, summary, about]})


def _pages() -> list[str]:
    """All pages, in the dashboard's order."""
    from dashboard.app import names

    return names()


@dataclass
class Page:
    """A page in a Streamlit without a browser, and how long it takes.

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
    tables: int = 0
    missing: int = 0
    rows: int = 0
    queries: int = 0
    look: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)

    def find(self, catalog: Catalog) -> bool:
        """Show it once, and keep what it asks; whether the lake has any table of it."""
        from streamlit.testing.v1 import AppTest

        script = f"from dashboard.app import show_once\nshow_once({self.name!r})"
        self._app = AppTest.from_string(script, default_timeout=_PAGE_SECONDS)
        self._names = queries.tables_of(self.name)
        found = look_at(catalog, self._names).tables
        if not found:
            return False
        self.tables, self.missing = len(found), len(self._names) - len(found)
        self.rows = sum(map(_rows, found.values()))
        with _noted() as self._queries:
            self._run()
        self.queries = len(self._queries)
        return True

    def measure(self, catalog: Catalog) -> None:
        """All of it once more."""
        _forget()
        self.look.append(_seconds(lambda: look_at(catalog, self._names)))
        _forget()
        self.asked.append(_seconds(lambda: self._ask(catalog)))
        _forget()
        self.shown.append(_seconds(self._run))
        self.again.append(_seconds(self._run))

    def row(self) -> list[Cell]:
        """Of each number the median and the most."""
        look, asked, shown, again = (
            [median(values), max(values)]
            for values in (self.look, self.asked, self.shown, self.again)
        )
        counts = (self.tables, self.rows, self.queries)
        return [self.name, *counts, look, asked, shown, shown[0] / LIMIT, again]

    def _ask(self, catalog: Catalog) -> None:
        look = look_at(catalog, self._names)
        for query, values in self._queries:
            query.rows(look, values)

    def _run(self) -> None:
        self._app.run()
        for problem in self._app.exception:
            raise PageFailed(f"{self.name}: {problem.value}")


@contextmanager
def _noted() -> Iterator[list[tuple[Query, Mapping[str, Value]]]]:
    """The queries that the body asks, with their values: a page chooses them."""
    rows, noted = Query.rows, []

    def note(query: Query, look: Look, values: Mapping[str, Value]) -> pa.Table:
        found = rows(query, look, values)
        noted.append((query, values))
        return found

    with patch.object(Query, "rows", note):
        yield noted


def _forget() -> None:
    """Nothing is kept of rows or of Iceberg's metadata, as behind a commit to every table."""
    import streamlit as st

    st.cache_data.clear()
    clear_manifest_cache()


def _rows(table: LakeTable) -> int:
    """Of the newest snapshot, as its commit counted them."""
    head = table.current_snapshot()
    total = head.summary["total-records"] if head and head.summary else None
    return int(total or 0)


def _seconds(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return round(time.perf_counter() - begun, 4)


if __name__ == "__main__":
    BENCHMARK.run(dashboard)
