"""The docs that the demo leaves, opened in a browser as a person would.

They are the demo's own, because only there every source of every domain has its table, and
because they then cost nothing but the seconds of the browser. Marts that the demo leaves out
have their page; what columns they would have, no catalogue knows.

Fails when a page of the generated docs is incomplete in a browser, or asks the network.
"""

from __future__ import annotations

import functools
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.python.stack.browser import NEEDS_CHROMIUM, Watched
from tests.python.stack.conftest import DemoRun

MART = "model.millrace.fct_regional_sales_windows"
# What the drawn graph holds: its canvas has no text to read.
GRAPH = """() => {
    const cy = document.querySelector('#cy')._cyreg.cy;
    const inside = node => {
        const at = node.renderedPosition();
        return at.x > 0 && at.y > 0 && at.x < cy.width() && at.y < cy.height();
    };
    return {
        nodes: cy.nodes().filter(node => node.visible() && inside(node)).map(n => n.id()),
        edges: cy.edges().filter(edge => edge.visible())
            .map(edge => [edge.source().id(), edge.target().id()]),
    };
}"""
PAINTED = """() => [...document.querySelectorAll('#cy canvas')].some(canvas =>
    canvas.width > 0 && canvas.getContext('2d')
        .getImageData(0, 0, canvas.width, canvas.height).data.some(byte => byte > 0))"""

pytestmark = NEEDS_CHROMIUM


@dataclass
class Site(Watched):
    """The docs in an open browser.

    Attributes:
        url: Where the docs are served.
        folder: The files that are served.
    """

    url: str
    folder: Path

    def open(self, place: str) -> None:
        self.page.goto(f"{self.url}#!/{place}", wait_until="networkidle")

    def open_node(self, name: str) -> None:
        """Open a model's page and wait until it is there."""
        self.open(f"model/{name}")
        title = self.page.locator("h1").filter(visible=True)
        expect(title).to_contain_text(name.rpartition(".")[2])

    def read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / name).read_text())
        return found


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *words: object) -> None:
        """Nothing, rather than a line on standard error for each request."""


@pytest.fixture
def site(demo: DemoRun, browser: Browser) -> Iterator[Site]:
    handler = functools.partial(Quiet, directory=str(demo.site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        with browser.new_page(viewport={"width": 1400, "height": 900}) as page:
            yield Site(page, f"http://127.0.0.1:{server.server_port}/", demo.site)
        server.shutdown()
        serving.join()


def words(text: str | None) -> str:
    return " ".join((text or "").split())


def marts(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        name: node
        for name, node in manifest["nodes"].items()
        if node["resource_type"] == "model" and "marts" in node["fqn"]
    }


def test_the_docs_open_with_our_overview(site: Site) -> None:
    site.open("overview")

    page = site.page
    expect(page.get_by_role("heading", name="Millrace")).to_be_visible()
    expect(page.get_by_role("heading", name="A first tour")).to_be_visible()
    # The picture keeps its lines.
    assert "registry           │" in page.locator("pre").first.inner_text()


def test_every_mart_shows_its_columns_with_type_and_description(site: Site) -> None:
    manifest, catalogue = site.read("manifest.json"), site.read("catalog.json")
    assert MART in catalogue["nodes"]

    for name, mart in marts(manifest).items():
        site.open_node(name)
        if name not in catalogue["nodes"]:
            continue
        shown = [
            tuple(words(cell.text_content()) for cell in row.locator("td").all()[:3])
            for row in site.page.locator("tr.column-row").all()
        ]

        built = catalogue["nodes"][name]["columns"].values()
        assert shown == [
            (column["name"], column["type"], words(mart["columns"][column["name"]]["description"]))
            for column in sorted(built, key=lambda column: column["index"])
        ], name
        assert [row[0] for row in shown] == list(mart["columns"]), name
        assert all(all(row) for row in shown), name
        text = site.page.locator("body").inner_text()
        grain = words(mart["description"]).split(". ")[0].replace("`", "")
        assert grain in words(text), name


def test_the_lineage_of_a_mart_shows_what_it_is_made_of(site: Site) -> None:
    manifest = site.read("manifest.json")
    site.open_node(MART)

    site.page.get_by_title("View Lineage Graph").click()
    site.page.wait_for_function(PAINTED)
    beside = site.page.evaluate(GRAPH)
    site.page.get_by_title("View Fullscreen").filter(visible=True).click()
    site.page.wait_for_url(re.compile("g_v=1"))
    site.page.wait_for_function(PAINTED)
    whole = site.page.evaluate(GRAPH)

    parents = manifest["nodes"][MART]["depends_on"]["nodes"]
    assert "model.millrace.fct_rental_sales" in parents
    assert {MART, *parents} <= set(beside["nodes"])
    assert all([parent, MART] in beside["edges"] for parent in parents)
    # The large picture goes back to the streams.
    ancestors, unseen = {MART}, [MART]
    while unseen:
        found = set(manifest["parent_map"][unseen.pop()]) - ancestors
        ancestors |= found
        unseen += found
    assert "source.millrace.pagila.sales" in ancestors
    assert ancestors <= set(whole["nodes"])
    assert {(parent, name) for name in ancestors for parent in manifest["parent_map"][name]} <= set(
        map(tuple, whole["edges"])
    )


def test_the_search_finds_a_column(site: Site) -> None:
    site.open("overview")

    site.page.get_by_placeholder("Search for models").fill("window_start_at")

    results = site.page.locator(".search-result").filter(visible=True)
    found = results.filter(has_text="fct_regional_sales_windows")
    expect(found).to_contain_text("columns: window_start_at")
    found.click()
    expect(site.page).to_have_url(re.compile(re.escape(f"#!/model/{MART}")))
    expect(site.page.get_by_role("cell", name="window_start_at").first).to_be_visible()


def test_no_page_complains_or_asks_anyone_but_its_own_server(site: Site) -> None:
    site.open("overview")
    site.open_node(MART)
    site.page.get_by_title("View Lineage Graph").click()
    site.page.wait_for_function(PAINTED)
    site.page.wait_for_load_state("networkidle")

    assert {"/", "/manifest.json", "/catalog.json"} <= {
        urlsplit(address).path for address in site.asked
    }
    assert [address for address in site.asked if not address.startswith(site.url)] == []
    assert site.complaints == []
    # dbt's own page asks for some pictures by the name of the expression that makes it.
    assert [path for path in site.refused if "{" not in path] == []
