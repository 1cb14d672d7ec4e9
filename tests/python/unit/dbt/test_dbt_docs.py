"""Every column is described, once: what several columns share is a docs block."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from docs.generate.domain_pages import Manifest
from sandbox.settings import PROJECT

Column = dict[str, Any]
# What dbt itself looks for.
OVERVIEW = "doc.millrace.__overview__"


def columns(manifest: Manifest) -> Iterator[tuple[str, Column]]:
    """Each column of a model, seed or source, with its node and name in words."""
    for node in [*manifest["nodes"].values(), *manifest["sources"].values()]:
        if node["resource_type"] in {"model", "seed", "source"}:
            for column in node["columns"].values():
                yield f"{node['unique_id']}.{column['name']}", column


def undescribed(manifest: Manifest) -> list[str]:
    return [name for name, column in columns(manifest) if len(column["description"].split()) < 2]


def written_twice(manifest: Manifest) -> dict[str, list[str]]:
    """Texts that stand in more than one place without being a docs block."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, column in columns(manifest):
        if not column["doc_blocks"]:
            places[" ".join(column["description"].split())].append(name)
    for name, block in manifest["docs"].items():
        if block["package_name"] == "millrace":
            places[" ".join(block["block_contents"].split())].append(name)
    return {text: names for text, names in places.items() if len(names) > 1}


def with_two_meanings(manifest: Manifest) -> dict[str, set[str]]:
    """Columns that are described in two ways.

    Those of models and seeds, where a name means one thing; and those that ingest adds to
    every source. Two streams may call two things by one name.
    """
    meanings: dict[str, set[str]] = defaultdict(set)
    for name, column in columns(manifest):
        if not name.startswith("source.") or column["name"].startswith("_"):
            meanings[column["name"]].add(column["description"])
    return {name: texts for name, texts in meanings.items() if len(texts) > 1}


def unused_blocks(manifest: Manifest) -> set[str]:
    ours = {name for name in manifest["docs"] if name.startswith("doc.millrace.")}
    used = {OVERVIEW}
    for kind in ("nodes", "sources", "exposures", "macros"):
        for node in manifest[kind].values():
            used |= set(node.get("doc_blocks") or [])
    used |= {block for _, column in columns(manifest) for block in column["doc_blocks"]}
    # dbt notes no blocks for the description of a whole source.
    for file in (PROJECT / "models").rglob("*.yml"):
        found = re.findall(r"doc\(['\"](\w+)['\"]\)", file.read_text())
        used |= {f"doc.millrace.{name}" for name in found}
    return ours - used


def wrongly_shown(manifest: Manifest) -> dict[str, bool]:
    """Macros by whether the docs show them, where that is wrong.

    Shown is what somebody who writes a model, a test or a hook calls, or types.
    """
    texts = [(PROJECT / "dbt_project.yml").read_text()]
    for folder in ("models", "tests/dbt", "analyses"):
        texts += [file.read_text() for file in (PROJECT / folder).rglob("*.sql")]
    typed = [file.read_text() for file in (PROJECT / "docs").rglob("*.md")]
    called = set(re.findall(r"(\w+)\(", " ".join(texts)))
    called |= set(re.findall(r"run-operation (\w+)", " ".join(typed)))
    return {
        macro["name"]: macro["docs"]["show"]
        for macro in manifest["macros"].values()
        if macro["package_name"] == "millrace"
        and macro["patch_path"]
        and macro["docs"]["show"] != (macro["name"] in called)
    }


# Names of a person, where they live, how they are reached, what they are; and numbers that stand
# for one.
PERSONAL = {
    **dict.fromkeys(("first_name", "last_name", "artist_name"), "direct"),
    **dict.fromkeys(("street_address", "street_address_2", "postal_code"), "direct"),
    **dict.fromkeys(("firstname", "lastname", "username", "email"), "direct"),
    **dict.fromkeys(("phone", "birth_year", "gender"), "direct"),
    **dict.fromkeys(("customer_id", "buyer_id", "seller_id", "user_id"), "indirect"),
    **dict.fromkeys(("buyerid", "sellerid", "userid"), "indirect"),
}


def test_personal_data_is_marked(manifest: Manifest) -> None:
    unmarked = [
        name
        for name, column in columns(manifest)
        if column["name"] in PERSONAL
        and column["config"]["meta"].get("pii") != PERSONAL[column["name"]]
    ]

    assert unmarked == []


def test_every_domain_says_who_reads_it_and_where(manifest: Manifest) -> None:
    pages = {}
    for exposure in manifest["exposures"].values():
        pages[exposure["owner"]["email"]] = exposure["url"]
    groups = {group["owner"]["email"] for group in manifest["groups"].values()}

    # What domains share is read through them.
    assert set(pages) == groups - {"analytics@millrace.example"}
    for url in pages.values():
        assert (PROJECT / url.partition("/blob/main/")[2]).is_file(), url


def test_each_layer_has_its_colour(manifest: Manifest) -> None:
    colours = defaultdict(set)
    for node in manifest["nodes"].values():
        if node["resource_type"] in {"model", "seed"}:
            colours[node["fqn"][1]].add(node["config"]["docs"]["node_color"])

    assert {layer: len(of) for layer, of in colours.items()} == dict.fromkeys(colours, 1)
    layers = {str(*colours[layer]) for layer in ("staging", "intermediate", "marts")}
    assert len(layers - {"None"}) == 3


def test_the_docs_show_the_macros_that_people_call_and_no_others(manifest: Manifest) -> None:
    assert wrongly_shown(manifest) == {}


def test_the_overview_links_to_what_exists(manifest: Manifest) -> None:
    text = manifest["docs"][OVERVIEW]["block_contents"]
    linked = re.findall(r"\]\(#!/\w+/([\w.]+)\)", text)

    assert len(linked) > 10
    assert set(linked) - (manifest["nodes"].keys() | manifest["sources"].keys()) == set()


def test_the_overview_leads_to_every_domain(manifest: Manifest) -> None:
    text = manifest["docs"][OVERVIEW]["block_contents"]
    domains = {
        name: node["fqn"][2]
        for name, node in manifest["nodes"].items()
        if node["resource_type"] == "model" and node["fqn"][1] != "staging"
    }

    linked = {domain for name, domain in domains.items() if f"{name})" in text}

    assert linked == set(domains.values())


# What these make has the values that a database holds, and that may be null.
AS_CAPTURED = {
    f"macro.millrace.{name}" for name in ("captured_changes", "change_history", "latest_state")
}


def undecided(manifest: Manifest) -> list[str]:
    """Columns for a yes or no that may be null: no test of the model requires them."""
    required: dict[str, set[str]] = defaultdict(set)
    for node in manifest["nodes"].values():
        test = node.get("test_metadata") or {}
        if test.get("name") in {"key_and_required_columns", "required_columns"}:
            model = node["attached_node"]
            for names in test["kwargs"].get("columns_where", {}).values():
                required[model] |= set(names)
            required[model] |= {
                column["name"]
                for column in manifest["nodes"].get(model, {"columns": {}})["columns"].values()
                if any(each["type"] == "not_null" for each in column["constraints"])
            }
    return [
        f"{name}.{column}"
        for name, node in manifest["nodes"].items()
        if node["resource_type"] == "model"
        and not AS_CAPTURED & set(node.get("depends_on", {}).get("macros", ()))
        for column in node["columns"]
        if re.match("_?(is|has)_", column) and column not in required[name]
    ]


def test_a_yes_or_no_has_no_third_answer(manifest: Manifest) -> None:
    assert undecided(manifest) == []


def test_a_yes_or_no_that_nobody_requires_is_found() -> None:
    bad = manifest_of(sales=described("Whether paid.", name="is_paid"))

    assert undecided(bad) == ["sales.is_paid"]


def test_every_column_of_models_seeds_and_sources_is_described(manifest: Manifest) -> None:
    assert len(list(columns(manifest))) > 50
    assert undescribed(manifest) == []


def test_no_description_is_written_twice(manifest: Manifest) -> None:
    assert written_twice(manifest) == {}


def test_a_name_means_one_thing_in_all_models(manifest: Manifest) -> None:
    assert with_two_meanings(manifest) == {}


def test_every_docs_block_is_used(manifest: Manifest) -> None:
    assert unused_blocks(manifest) == set()


def described(description: str, *blocks: str, name: str = "paid_at") -> Column:
    return {"name": name, "description": description, "doc_blocks": list(blocks)}


def manifest_of(docs: dict[str, str] | None = None, **nodes: Column) -> Manifest:
    """A manifest with a column for each node; ``source_…`` is one, all else a model."""
    made: Manifest = {kind: {} for kind in ("nodes", "sources", "exposures", "macros")}
    for name, column in nodes.items():
        kind = "source" if name.startswith("source_") else "model"
        made["sources" if kind == "source" else "nodes"][name] = {
            "unique_id": f"{kind}.millrace.{name}",
            "resource_type": kind,
            "columns": {column["name"]: column},
        }
    made["docs"] = {
        f"doc.millrace.{name}": {"package_name": "millrace", "block_contents": text}
        for name, text in (docs or {}).items()
    }
    return made


def test_a_column_without_a_text_is_found_in_a_source_too() -> None:
    bad = manifest_of(a=described("When paid."), source_b=described(""))

    assert undescribed(bad) == ["source.millrace.source_b.paid_at"]


@pytest.mark.parametrize(
    "bad",
    [
        manifest_of(a=described("When paid."), b=described("When\npaid.")),
        manifest_of({"paid_at": "When paid."}, a=described("When paid.")),
        manifest_of({"paid_at": "When paid.", "paid": "When paid."}),
    ],
)
def test_a_copied_text_is_found(bad: Manifest) -> None:
    assert list(written_twice(bad)) == ["When paid."]


def test_a_shared_block_is_no_copy() -> None:
    shared = described("When paid.", "doc.millrace.paid_at")

    assert written_twice(manifest_of({"paid_at": "When paid."}, a=shared, b=shared)) == {}


def test_two_meanings_are_found_but_not_between_streams() -> None:
    one, other = described("When paid."), described("When sent.")

    assert list(with_two_meanings(manifest_of(a=one, b=other))) == ["paid_at"]
    assert with_two_meanings(manifest_of(a=one, source_b=other)) == {}


def test_what_ingest_adds_means_one_thing_in_all_streams() -> None:
    one, other = described("A", name="_key"), described("B", name="_key")

    assert list(with_two_meanings(manifest_of(source_a=one, source_b=other))) == ["_key"]


def test_an_unused_block_is_found() -> None:
    unused = manifest_of({"of_no_column": "Nothing.", "__overview__": "All."})

    assert unused_blocks(unused) == {"doc.millrace.of_no_column"}
