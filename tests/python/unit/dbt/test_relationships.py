"""Foreign keys to captured tables: a row that is deleted there breaks no build."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.generate.domain_pages import Manifest


def looked_up(manifest: Manifest) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each test of relationships, with the model in which it looks a key up."""
    for node in manifest["nodes"].values():
        if (node.get("test_metadata") or {}).get("name") == "relationships":
            (looked,) = set(node["depends_on"]["nodes"]) - {node["attached_node"]}
            yield node, manifest["nodes"][looked]


def of_captured(manifest: Manifest) -> set[str]:
    """The domains with histories of captured tables that marts refer to."""
    return {
        node["fqn"][2]
        for node in manifest["nodes"].values()
        if node["name"].startswith("fct_")
        and any(of.endswith("_history") for of in manifest["parent_map"][node["unique_id"]])
    }


def test_keys_of_captured_tables_are_looked_up_in_histories(manifest: Manifest) -> None:
    domains = of_captured(manifest)
    found = [
        (test, model)
        for test, model in looked_up(manifest)
        # A calendar is of no domain.
        if model["fqn"][2] in domains
    ]

    assert len(found) > 10
    assert [test["name"] for test, model in found if not model["name"].endswith("_history")] == []


def test_a_row_ahead_of_its_parent_is_a_warning(manifest: Manifest) -> None:
    for test, model in looked_up(manifest):
        if model["name"].endswith("_history"):
            config = test["config"]
            assert (config["warn_if"], config["error_if"]) == ("!=0", ">100")
            assert config["severity"].lower() == "error"
            assert "warning" in test["description"]


def test_each_day_of_a_mart_is_looked_up_in_the_calendar(manifest: Manifest) -> None:
    """One wrong clock turns no job red, and a year that the calendar lacks is seen."""
    days = {
        (node["unique_id"], column["name"])
        for node in manifest["nodes"].values()
        if node["resource_type"] == "model" and node["fqn"][1] == "marts"
        for column in node["columns"].values()
        if column["data_type"] == "date" and node["name"] != "dim_dates"
    }
    calendar = [test for test, model in looked_up(manifest) if model["name"] == "dim_dates"]

    assert {(test["attached_node"], test["column_name"]) for test in calendar} == days
    for test in calendar:
        config = test["config"]
        assert (config["warn_if"], config["error_if"]) == ("!=0", ">100")
