"""The dashboard in a browser, on what the demo left and on a lake without anything.

Fails when a page shows other values than its SQL gives, complains, or leaves somebody out.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from dashboard import queries
from dashboard.lake import Look
from sandbox.processes.process import accepts
from sandbox.services.redshift.lake import Lake
from sandbox.settings import PROJECT
from tests.python.conftest import Stack, free_ports
from tests.python.programs import ran
from tests.python.stack.browser import NEEDS_CHROMIUM, Watched
from tests.python.stack.conftest import DemoRun, wait_for

pytest.importorskip("streamlit", reason="no Streamlit: `make test-dashboard` installs it first")
pytestmark = NEEDS_CHROMIUM

PAGES, FIRST = list(queries.pages()), "overview"
WIDE: ViewportSize = {"width": 1400, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}
_START_SECONDS = 60
_WAIT_MS = 60_000


@dataclass
class Dashboard(Watched):
    """A page of the browser on a running dashboard.

    Attributes:
        url: Where it runs.
    """

    url: str

    def open(self, page: str) -> None:
        """Open a page by its link, and wait until it has shown all of its figures."""
        self.page.goto(self.url)
        self.wait_until_shown()
        if page != FIRST:
            self.page.get_by_role("link", name=page.capitalize(), exact=True).click()
            title = self.page.get_by_role("heading", level=1, name=page.capitalize())
            expect(title).to_be_visible(timeout=_WAIT_MS)
            self.wait_until_shown()

    def wait_until_shown(self) -> None:
        shown = self.page.get_by_text(re.compile("shown in|No table of this page"))
        expect(shown).to_be_visible(timeout=_WAIT_MS)


@contextmanager
def running(home: Path) -> Iterator[str]:
    """A dashboard on a sandbox's lake, as `make dashboard` starts it; ended as Ctrl-C ends it."""
    (port,) = free_ports(1)
    env = os.environ | {"SANDBOX_HOME": str(home)}
    command = [sys.executable, "-m", "dashboard", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=PROJECT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as program:
        try:
            wait_for(lambda: program.poll() is not None or accepts(port))
            yield f"http://127.0.0.1:{port}"
        finally:
            program.send_signal(signal.SIGINT)
            said = program.communicate(timeout=_START_SECONDS)[0].decode()
        assert f"http://127.0.0.1:{port}" in said
        assert "Traceback" not in said
        assert program.returncode == 0, said


@pytest.fixture(scope="module")
def served(stack: Stack, demo: DemoRun) -> Iterator[str]:
    with running(stack.home.path) as url:
        yield url


@pytest.fixture(scope="module")
def look(stack: Stack, demo: DemoRun) -> Look:
    """All that the pages read, as the demo left it."""
    lake = Lake(stack.home.path / "lake")
    tables = {}
    for page in PAGES:
        for query in queries.of_page(page).values():
            for name in query.tables():
                with suppress(KeyError):
                    tables[name] = lake.table(*name.split("."))
    return Look(tables)


@pytest.fixture
def dashboard(served: str, browser: Browser) -> Iterator[Dashboard]:
    with browser.new_page(viewport=WIDE) as page:
        yield Dashboard(page, served)


def grids(page: Page) -> list[list[str]]:
    """The first rows of each table of a page, cell by cell, as a screen reader has them."""
    found: list[list[str]] = page.evaluate(
        """() => [...document.querySelectorAll('canvas table')].map(table =>
            [...table.querySelectorAll('tbody tr')].slice(0, 1).flatMap(row =>
                [...row.querySelectorAll('td')].map(cell => cell.textContent)))"""
    )
    return found


def first_row(look: Look, page: str, figure: str, **values: Any) -> dict[str, Any]:
    rows: list[dict[str, Any]] = queries.of_page(page)[figure].rows(look, values).to_pylist()
    return rows[0]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_each_figure_and_complains_of_nothing(
    dashboard: Dashboard, look: Look, name: str
) -> None:
    dashboard.open(name)

    page = dashboard.page
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_role("heading", level=1)).to_have_text(name.capitalize())
    for figure, query in queries.of_page(name).items():
        missing = [table for table in query.tables() if table not in look.tables]
        if missing:
            model = missing[0].partition(".")[2]
            expect(page.get_by_text(f"+{model}").first).to_be_visible()
        elif not query.parameters() and figure != "newest_window":
            expect(page.get_by_role("heading", name=query.title)).to_be_visible()
    assert dashboard.complaints == []
    assert dashboard.refused == []
    assert {url for url in dashboard.asked if "127.0.0.1" not in url[:30]} == set()


def test_the_overview_has_the_numbers_that_sql_gives(dashboard: Dashboard, look: Look) -> None:
    dashboard.open("overview")

    shown = dashboard.page.get_by_test_id("stMetricValue").all_inner_texts()
    rentals, smoothies = (
        first_row(look, "overview", domain) for domain in ("rentals", "smoothies")
    )
    assert shown[:4] == [
        f"{rentals['stored_count']:,}",
        f"{rentals['amount']:,.2f}",
        f"{smoothies['stored_count']:,}",
        f"{smoothies['amount']:,.2f}",
    ]


@pytest.mark.parametrize(
    ("name", "figure"),
    [("pipeline", "ledger"), ("rentals", "sales_by_country"), ("smoothies", "newest_purchases")],
)
def test_a_table_has_the_rows_that_sql_gives(
    dashboard: Dashboard, look: Look, name: str, figure: str
) -> None:
    dashboard.open(name)

    row = first_row(look, name, figure)
    texts = [value for value in row.values() if isinstance(value, str)]
    assert texts
    expect(dashboard.page.locator("canvas table").first).to_be_attached()
    shown = grids(dashboard.page)
    assert any(set(texts) <= set(cells) for cells in shown), (texts, shown)


def test_the_address_of_a_page_leads_to_it(dashboard: Dashboard) -> None:
    dashboard.page.goto(f"{dashboard.url}/pipeline")
    dashboard.wait_until_shown()

    expect(dashboard.page.get_by_role("heading", level=1)).to_have_text("Pipeline")
    # Streamlit first asks below the page's own address whether it is served there.
    asked_below = {f"{dashboard.url}/pipeline/_stcore/{name}" for name in ("health", "host-config")}
    assert set(dashboard.refused) <= asked_below
    assert dashboard.complaints == []


def test_pages_are_reached_by_the_keyboard(dashboard: Dashboard) -> None:
    dashboard.open("overview")
    page = dashboard.page
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "Pipeline":
            break
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile("/pipeline$"))
    dashboard.wait_until_shown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_shows_all_in_both_themes(
    served: str, browser: Browser, scheme: Any
) -> None:
    colours = set()
    with browser.new_page(viewport=NARROW, color_scheme=scheme) as page:
        dashboard = Dashboard(page, served)
        for name in PAGES:
            page.goto(f"{served}/{'' if name == FIRST else name}")
            dashboard.wait_until_shown()
            main = page.get_by_test_id("stMain")
            assert main.evaluate("it => it.scrollWidth <= it.clientWidth"), name
            colours.add(
                page.get_by_test_id("stApp").evaluate("it => getComputedStyle(it).backgroundColor")
            )
    assert len(colours) == 1
    (colour,) = colours
    is_dark = max(map(int, re.findall(r"\d+", colour)[:3])) < 128
    assert is_dark == (scheme == "dark")


def test_a_page_follows_the_lake_by_itself(dashboard: Dashboard) -> None:
    dashboard.open("overview")
    page = dashboard.page
    newest = page.get_by_text("Newest snapshot")
    before = newest.inner_text()

    # Its age grows with each refresh, without anybody asking.
    expect(newest).not_to_have_text(before, timeout=_WAIT_MS)
    assert dashboard.complaints == []


def test_an_empty_lake_names_the_command_that_fills_it(tmp_path: Path) -> None:
    done = ran(
        [sys.executable, "-m", "dashboard"], env=os.environ | {"SANDBOX_HOME": str(tmp_path)}
    )

    assert done.returncode == 1
    assert "`make demo`" in done.stderr
    assert len(done.stderr.splitlines()) == 1
