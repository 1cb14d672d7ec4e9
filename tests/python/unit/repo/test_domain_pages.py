"""The pages of docs/domains say what the models are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from docs.generate.domain_pages import (
    PAGES,
    REWRITE,
    Manifest,
    domains,
    domains_part,
    marts,
    samples,
    way,
    with_rows,
)
from docs.generate.parts import with_parts

DOMAIN_PAGES = sorted(page for page in PAGES.glob("*.md") if page.name != "README.md")

# A table of faults shows its heading where there are none.
EMPTY_WHEN_ALL_IS_WELL = {"rpt_ingest_gaps"}


def node(name: str, kind: str = "model", layer: str = "marts", domain: str = "d") -> dict[str, Any]:
    return {
        "name": name,
        "resource_type": kind,
        "fqn": ["millrace", layer, domain, name],
        "source_name": "s",
    }


def small_manifest() -> Manifest:
    """A stream, its staging, an intermediate model and a mart of d; a mart of e reads that."""
    nodes = {
        "model.m.stg": node("stg", layer="staging", domain="s"),
        "model.m.int": node("int", layer="intermediate"),
        "model.m.fct": node("fct"),
        "model.m.rpt": node("rpt", domain="e"),
        "test.m.t": node("t", kind="test"),
    }
    return {
        "nodes": nodes,
        "sources": {"source.m.s.t": node("t", kind="source", layer="staging", domain="s")},
        "parent_map": {
            "source.m.s.t": [],
            "model.m.stg": ["source.m.s.t"],
            "model.m.int": ["model.m.stg"],
            "model.m.fct": ["model.m.int"],
            "model.m.rpt": ["model.m.fct"],
        },
    }


def test_every_domain_has_its_page_and_every_page_its_domain(manifest: Manifest) -> None:
    assert [page.stem for page in DOMAIN_PAGES] == domains(manifest)


def test_the_table_of_domains_is_what_the_manifest_says(manifest: Manifest) -> None:
    text = (PAGES / "README.md").read_text()
    table = {"domains": domains_part(manifest).splitlines()}

    assert with_parts(text, table) == text, f"run `{REWRITE}`"


@pytest.mark.parametrize("page", [p.name for p in DOMAIN_PAGES])
def test_every_mart_has_sample_rows_with_columns_that_it_has(manifest: Manifest, page: str) -> None:
    text = (PAGES / page).read_text()
    ours = marts(manifest, page.removesuffix(".md"))
    shown = {}
    for query, rows in samples(text):
        (mart,) = re.findall(r"from marts\.(\w+)", query)
        heading, line, *below = rows.splitlines()
        assert set(line) == {"-", " "}, query
        assert below or mart in EMPTY_WHEN_ALL_IS_WELL, query
        shown[mart] = heading.split()
        assert set(shown[mart]) <= set(ours[mart]["columns"]), f"run `{REWRITE} --rows`"
        if "select *" in query:
            assert shown[mart] == list(ours[mart]["columns"]), f"run `{REWRITE} --rows`"

    assert shown.keys() == ours.keys()
    assert text.count("$ sandbox sql") == len(samples(text))


def test_rows_are_asked_again_of_the_wanted_marts_and_added_where_there_are_none() -> None:
    kept = '```\n$ sandbox sql "select a from marts.other limit 1"\na\n-\n1\n```\n'
    page = kept + '\n```\n$ sandbox sql "select b from marts.old limit 1"\nb\n-\n1\n```\n'
    asked = []

    def ask(query: str) -> str:
        asked.append(query)
        return "rows\n"

    text = with_rows(page, {"old": ["b"], "new": ["key", "c"]}, ask)

    queries = [
        "select a from marts.other limit 1",
        "select b from marts.old limit 1",
        "select * from marts.new order by key limit 3",
    ]
    assert samples(text) == [
        (queries[0], "a\n-\n1\n"),
        (queries[1], "rows\n"),
        (queries[2], "rows\n"),
    ]
    assert asked == queries[1:]
    assert text.startswith(kept)


@pytest.mark.parametrize("page", [p.name for p in DOMAIN_PAGES])
def test_a_page_names_only_models_and_analyses_that_exist(manifest: Manifest, page: str) -> None:
    known = {node["name"] for node in manifest["nodes"].values()}
    text = (PAGES / page).read_text()
    named = set(re.findall(r"`((?:stg|int|fct|dim|rpt)_\w+)`", text))
    asked = set(re.findall(r"the analysis `(\w+)`", text))

    assert named | asked
    assert (named | asked) - known == set()


def test_every_analysis_answers_a_question_of_a_domain(manifest: Manifest) -> None:
    kept = {
        node["name"] for node in manifest["nodes"].values() if node["resource_type"] == "analysis"
    }
    text = "".join(page.read_text() for page in DOMAIN_PAGES)

    assert kept
    assert kept - set(re.findall(r"the analysis `(\w+)`", text)) == set()


def test_the_way_goes_from_the_stream_to_the_marts_and_stops_at_other_domains() -> None:
    edges = way(small_manifest(), "d")

    assert edges == {
        ("source.m.s.t", "model.m.stg"),
        ("model.m.stg", "model.m.int"),
        ("model.m.int", "model.m.fct"),
    }
    assert way(small_manifest(), "e") == {("model.m.fct", "model.m.rpt")}
