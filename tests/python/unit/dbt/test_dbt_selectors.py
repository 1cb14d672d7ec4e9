"""What selectors and groups select: all that reads all of bronze, and what is built alone."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from docs.generate.domain_pages import Manifest, Node
from tests.python.programs import ran

EVERYDAY, PROOF = ["--selector", "everyday"], ["--selector", "proof"]
MODIFIED = ["--select", "state:modified"]
# Its models read every stream, and which there are they ask the lake.
OF_ALL_STREAMS = "ops"


def data_tests(manifest: Manifest) -> dict[str, Node]:
    """The data tests by their unique id."""
    return {
        name: node for name, node in manifest["nodes"].items() if node["resource_type"] == "test"
    }


def parents(name: str, manifest: Manifest) -> list[str]:
    """What a node reads, by unique id."""
    read: list[str] = manifest["parent_map"][name]
    return read


def is_all_of_bronze(name: str, manifest: Manifest) -> bool:
    """Whether a node is a source, or a view that reads one, itself or through views."""
    if name in manifest["sources"]:
        return True
    if manifest["nodes"][name]["config"]["materialized"] not in ("view", "ephemeral"):
        return False
    read = parents(name, manifest)
    # A view that names nothing asks the lake which sources there are.
    return not read or any(is_all_of_bronze(parent, manifest) for parent in read)


def groups(manifest: Manifest) -> list[str]:
    """The groups whose models can be built alone."""
    every = {group["name"] for group in manifest["groups"].values()}
    return sorted(every - {OF_ALL_STREAMS})


def state_of_production(manifest: Manifest, folder: Path) -> Path:
    """A folder with the manifest of a target whose schemas are bare, of the same project."""
    schemas = {
        name: {**source, "schema": source["schema"].removeprefix("lint_")}
        for name, source in manifest["sources"].items()
    }
    assert schemas != manifest["sources"]
    state = folder / "production"
    state.mkdir()
    (state / "manifest.json").write_text(json.dumps({**manifest, "sources": schemas}))
    return state


@pytest.fixture(scope="module")
def selected(
    manifest: Manifest, parsed: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, set[str]]:
    """What dbt selects, by the last word of each selection: unique ids."""
    folder = tmp_path_factory.mktemp("selected")
    # Not parsed again.
    shutil.copy(parsed / "partial_parse.msgpack", folder)
    asked = [
        ["--state", str(state_of_production(manifest, folder)), *MODIFIED],
        EVERYDAY,
        PROOF,
        *(["--select", f"+group:{group}"] for group in groups(manifest)),
    ]
    done = ran(
        [
            *(sys.executable, "-m", "tests.python.unit.dbt.selections"),
            *(str(folder), *map(json.dumps, asked)),
        ],
        env={k: v for k, v in os.environ.items() if not k.startswith("DBT_")},
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {words[-1]: set(chosen) for words, chosen in zip(asked, found, strict=True)}


def test_what_reads_all_of_bronze_is_a_proof_and_nothing_else(manifest: Manifest) -> None:
    wanted = {
        name
        for name in data_tests(manifest)
        if any(is_all_of_bronze(parent, manifest) for parent in parents(name, manifest))
    }
    tagged = {name for name, test in data_tests(manifest).items() if "proof" in test["tags"]}
    assert wanted
    assert tagged == wanted


def test_everyday_is_everything_but_the_proof(
    manifest: Manifest, selected: dict[str, set[str]]
) -> None:
    built = {
        name
        for name, node in (manifest["nodes"] | manifest["unit_tests"]).items()
        if node["resource_type"] in ("model", "seed", "test", "unit_test")
    }
    proof = {name for name, node in data_tests(manifest).items() if "proof" in node["tags"]}
    assert built & selected["everyday"] == built - proof
    assert selected["proof"] == proof


def test_a_build_without_a_selector_leaves_nothing_out(manifest: Manifest) -> None:
    assert {"everyday", "proof"} <= manifest["selectors"].keys()
    assert not any(selector.get("default") for selector in manifest["selectors"].values())


def test_a_group_that_is_built_alone_reads_nothing_that_is_not_built(
    manifest: Manifest, selected: dict[str, set[str]]
) -> None:
    there = manifest["sources"].keys()

    # A source is there from the first ingest on, whatever is built.
    missing = {
        group: {
            name: lacking
            for name in selected[f"+group:{group}"] - there
            if (lacking := set(parents(name, manifest)) - there - selected[f"+group:{group}"])
        }
        for group in groups(manifest)
    }

    assert missing == {group: {} for group in groups(manifest)}


@pytest.mark.parametrize("domain", ["museum", "tickets"])
def test_a_group_of_captured_tables_is_all_of_its_domain(
    domain: str, manifest: Manifest, selected: dict[str, set[str]]
) -> None:
    folders = (["intermediate", domain], ["marts", domain])

    of_domain = {
        name
        for name, node in manifest["nodes"].items()
        if node["resource_type"] in ("model", "test")
        and node["fqn"][1:3] in folders
        # The calendar is of no domain: its tests come where it is selected, too.
        and "model.millrace.dim_dates" not in node["depends_on"]["nodes"]
    }

    assert of_domain
    assert of_domain <= selected[f"+group:{domain}"]


def test_a_pull_request_that_changes_nothing_builds_nothing(selected: dict[str, set[str]]) -> None:
    assert selected["state:modified"] == set()
