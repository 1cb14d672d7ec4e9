"""The pages name what is there: models and their like, the layer of each, the marts of a domain."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from docs.generate.domain_pages import Manifest
from sandbox.settings import PROJECT

OVERVIEW = PROJECT / "models/overview.md"
PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    *(
        page
        for folder in ("docs", "models", "deploy")
        for page in sorted((PROJECT / folder).rglob("*.md"))
    ),
]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))

FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
# A name that goes on with one of the last is a pattern: `int_tickit__*_history`.
NAME = re.compile(r"(?<![\w/.*…<-])((?:stg|int|fct|dim|rpt|assert)_\w+)(?![\w*…<{])")
IN_LAYER = re.compile(r"\b(staging|intermediate|marts|seeds)\.([a-z]\w+)")
# What a page has its reader write, or a command write, it names by its file.
WRITTEN = re.compile(r"\bmodels/(\w+)/[\w/]*?(\w+)\.sql\b")
LINK = re.compile(r"#!/(?:model|source)/((?:model|source)\.[\w.]+)")
ROW = re.compile(r"^\| marts: (\w+) \((\d+)\) \|.*$", re.MULTILINE)


def names_in(text: str) -> set[str]:
    """What a page calls a model, a test or the like, between backticks."""
    spans = re.findall(r"`([^`]+)`", FENCED.sub("", text))
    return {name for span in spans for name in NAME.findall(span)}


def layers_in(text: str) -> set[tuple[str, str]]:
    """Each name with the layer in which a page says that it is, wherever it stands."""
    return set(IN_LAYER.findall(text))


def written_by(text: str) -> dict[str, str]:
    """The layer of each model that a page shows how to write."""
    return {name: layer for layer, name in WRITTEN.findall(text)}


def known(manifest: Manifest) -> set[str]:
    """Names of models, seeds, tests and analyses, and of macros."""
    kinds = ("nodes", "macros", "exposures", "unit_tests")
    return {node["name"] for kind in kinds for node in manifest[kind].values()}


def layers(manifest: Manifest) -> dict[str, str]:
    """The folder of each model and seed: its schema."""
    return {
        node["name"]: "seeds" if node["resource_type"] == "seed" else node["fqn"][1]
        for node in manifest["nodes"].values()
        if node["resource_type"] in {"model", "seed"}
    }


def marts(manifest: Manifest) -> dict[str, set[str]]:
    """The marts of each domain."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in manifest["nodes"].values():
        if node["resource_type"] == "model" and node["fqn"][1] == "marts":
            found[node["fqn"][2]].add(node["name"])
    return found


def test_names_patterns_and_layers_are_distinguished() -> None:
    text = (
        "`fct_a` and `dbt build --select +int_b`, `int_c__*_history`, `stg_d__<table>`,\n"
        "`rpt_…` and `models/marts/x/dim_e.sql`, int_f of somebody else.\n"
        "```\ndbt run --select rpt_g\nselect * from marts.fct_h\n```\n"
    )

    assert names_in(text) == {"fct_a", "int_b"}
    assert layers_in(text) == {("marts", "fct_h")}
    assert written_by(text) == {"dim_e": "marts"}


@each_page
def test_a_page_names_what_is_there(manifest: Manifest, page: Path) -> None:
    text = page.read_text()

    assert names_in(text) - known(manifest) - written_by(text).keys() == set()


@each_page
def test_a_page_says_of_a_name_the_layer_that_it_is_in(manifest: Manifest, page: Path) -> None:
    text = page.read_text()
    there = written_by(text) | layers(manifest)

    assert [(layer, name) for layer, name in layers_in(text) if there.get(name) != layer] == []


def test_pages_name_enough_to_be_looked_at() -> None:
    texts = [page.read_text() for page in PAGES]

    assert len(set().union(*map(names_in, texts))) > 50
    assert len(set().union(*map(layers_in, texts))) > 30


def test_the_front_page_links_to_what_is_there(manifest: Manifest) -> None:
    linked = set(LINK.findall(OVERVIEW.read_text()))

    assert linked
    assert linked - manifest["nodes"].keys() - manifest["sources"].keys() == set()


def test_the_front_page_counts_the_marts_of_each_domain(manifest: Manifest) -> None:
    there = marts(manifest)
    text = OVERVIEW.read_text()
    rows = list(ROW.finditer(text))

    assert Counter({row[1]: int(row[2]) for row in rows}) == {
        domain: len(names) for domain, names in there.items()
    }
    for row in rows:
        linked = {name.rpartition(".")[2] for name in LINK.findall(row[0])}
        assert linked, row[1]
        assert linked <= there[row[1]]
    assert not re.search(r"\bno marts?\b", text)


def test_the_tour_of_each_domain_ends_at_a_mart(manifest: Manifest) -> None:
    there = marts(manifest)
    tour = OVERVIEW.read_text().partition("## A first tour")[2].partition("\n## ")[0]
    others = tour.partition("Do the same in the other domains:")[2]

    ways = re.findall(r"\*(\w+)\*(.+?)(?:;|\.$)", others, re.DOTALL | re.MULTILINE)
    assert {domain for domain, _ in ways} >= {"museum", "smoothies", "tickets", "ops"}
    for domain, way in ways:
        assert LINK.findall(way)[-1].rpartition(".")[2] in there[domain]
