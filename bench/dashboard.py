"""What a page of the dashboard costs: a look at its tables, its queries, the page as shown.

::

    python -m bench.dashboard                  # each page ten times
    python -m bench.dashboard --times 1        # does it work?
    python -m bench.dashboard --write-docs     # and put the results into the docs
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any
from unittest.mock import patch

import pyarrow as pa
import typer
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table

from bench.report.dashboard_results import (
    LIMIT,
    RESULTS,
    Dashboard,
    Page,
    read_dashboard,
    slow,
    table,
    write_page,
)
from bench.report.machine import Measurement
from bench.report.options import OnlyDocs, ResultsFile, WriteDocs
from bench.report.results import write_kept
from dashboard import queries
from dashboard.lake import LakeIsEmpty, Look, look_at, open_catalog
from dashboard.queries import Query, Value
from sandbox.ui import err, say, tell
from spark_ingest.errors import ConfigurationError, MillraceError

PACKAGES = {"DuckDB": "duckdb", "PyIceberg": "pyiceberg", "Streamlit": "streamlit"}
_PAGE_SECONDS = 120

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class TooSlow(MillraceError):
    """A page takes longer than its limit."""


class PageFailed(MillraceError):
    """A page shows an exception where it should show a figure."""


@app.command()
def dashboard(
    times: Annotated[int, typer.Option(min=1, help="How often each page.")] = 10,
    results: ResultsFile = RESULTS,
    write_docs: WriteDocs = False,
    only_docs: OnlyDocs = False,
) -> None:
    """Measure the pages on the lake that the dashboard reads; a page without tables is left out.

    The pages take turns, so that a machine that is slow for a while is slow for all.

    Exit codes: 0 within the limit, 1 a page takes longer or fails, 2 wrong use.
    """
    if only_docs:
        write_page(read_dashboard(results))
        return
    done = measure(times)
    write_kept(done, results)
    for line in table(done):
        tell(line)
    say(f"all numbers: {results}")
    if write_docs:
        write_page(done)
    if above := slow(done):
        names = ", ".join(page.name for page in above)
        raise TooSlow(f"longer than {LIMIT:g} s: {names}")


def measure(times: int) -> Dashboard:
    """Show each page once, and then so many times.

    Raises:
        ConfigurationError: No lake, no table of any page, or no Streamlit.
        PageFailed: A page shows an exception.
    """
    if find_spec("streamlit") is None:
        raise ConfigurationError("no Streamlit: `make bench-dashboard` installs it")
    # Outside of its server Streamlit warns of that in each run.
    logging.disable(logging.WARNING)
    try:
        catalog = open_catalog()
    except LakeIsEmpty as error:
        raise ConfigurationError(str(error)) from error
    measurement = Measurement("dashboard")
    shown = [page for page in map(_Shown, _pages()) if page.find(catalog)]
    if not shown:
        raise ConfigurationError("the lake has no table of any page: `make demo`")
    for _ in range(times):
        for page in shown:
            page.measure(catalog)
    return Dashboard(
        about=measurement.about(),
        versions={name: version(package) for name, package in PACKAGES.items()},
        pages=[page.result() for page in shown],
    )


def _pages() -> list[str]:
    """All pages, in the dashboard's order."""
    from dashboard.app import names

    return names()


@dataclass
class _Shown:
    """A page in a Streamlit without a browser, and how long it takes."""

    name: str
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
        self._found = look_at(catalog, self._names)
        if not self._found.tables:
            return False
        with _noted() as self._queries:
            self._run()
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

    def result(self) -> Page:
        """What was measured."""
        return Page(
            name=self.name,
            tables=len(self._found.tables),
            missing=len(self._names) - len(self._found.tables),
            rows=sum(map(_rows, self._found.tables.values())),
            queries=len(self._queries),
            look=self.look,
            asked=self.asked,
            shown=self.shown,
            again=self.again,
        )

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


def _rows(table: Table) -> int:
    """Of the newest snapshot, as its commit counted them."""
    head = table.current_snapshot()
    said = head.summary["total-records"] if head and head.summary else None
    return int(said or 0)


def _seconds(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return round(time.perf_counter() - begun, 4)


def main() -> None:
    """Run the command; a mistake that a person can mend is one line on standard error."""
    try:
        app()
    except MillraceError as error:
        err.print(f"bench.dashboard: {error}", markup=False, highlight=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
