"""What the demo leaves out follows from the manifest and from what the lake holds."""

from __future__ import annotations

from typing import Any

from docs.generate.domain_pages import Manifest
from sandbox.tour import exclusions


def source(name: str, **ingest: Any) -> dict[str, Any]:
    group, _, table = name.partition(".")
    return {
        "source_name": group,
        "name": table,
        "schema": "bronze",
        "identifier": f"{group}__{table}",
        "config": {"meta": {"ingest": ingest}},
    }


def small() -> dict[str, Any]:
    """Sales from a topic, films and actors captured, a report of both, a test of a macro."""
    kinds = {
        "model.stg_sales": ["source.sales"],
        "model.stg_film": ["source.film"],
        "model.stg_actor": ["source.actor"],
        "model.report": ["model.stg_sales", "model.stg_film"],
        "test.sales_hold": ["model.stg_sales"],
        "test.report_holds": ["model.report"],
        "test.macro_counts": [],
        "seed.regions": [],
    }
    children: dict[str, list[str]] = {}
    for name, parents in kinds.items():
        for parent in parents:
            children.setdefault(parent, []).append(name)
    return {
        "sources": {
            "source.sales": source("pagila.sales", topic="a"),
            "source.film": source("pagila.film", topic="b", captured={"form": "row"}),
            "source.actor": source("pagila.actor", topic="c", captured={"form": "row"}),
        },
        "nodes": {
            name: {
                "name": name.partition(".")[2],
                "resource_type": name.partition(".")[0],
                "depends_on": {"nodes": parents},
            }
            for name, parents in kinds.items()
        },
        "child_map": children,
        "unit_tests": {"unit_test.report_adds_up": {}},
    }


def test_captured_tables_are_left_out_while_they_hold_nothing() -> None:
    asked: list[str] = []

    def is_filled(table: str) -> bool:
        asked.append(table)
        return table == "bronze.pagila__film"

    assert exclusions.unfilled(small(), is_filled) == ["pagila.actor"]
    assert asked == ["bronze.pagila__film", "bronze.pagila__actor"]


def test_what_reads_them_through_others_is_left_out_with_its_tests() -> None:
    assert exclusions.readers(small(), ["pagila.film"]) == {
        "model.stg_film",
        "model.report",
        "test.report_holds",
    }
    assert exclusions.readers(small(), []) == set()


def test_dbt_gets_only_the_exclusions() -> None:
    without = ["--exclude-resource-types", "unit_test", "--exclude", "macro_counts"]

    assert exclusions.selection(small(), []) == without
    assert exclusions.selection(small(), ["pagila.actor", "pagila.film"]) == [
        *without,
        "source:pagila.actor+",
        "source:pagila.film+",
    ]


def test_built_nodes_are_counted_and_exclusions_are_summarized_in_one_line() -> None:
    assert exclusions.built(small(), ["pagila.film"]) == {"model": 2, "seed": 1, "test": 1}
    assert exclusions.summary(small(), ["pagila.actor", "pagila.film"]) == (
        "left out (`dbt build` has them): 2 tests of code,"
        " 3 models of 2 captured tables still empty"
    )
    assert "captured" not in exclusions.summary(small(), [])


def test_of_one_group_only_its_models_are_built_and_counted(manifest: Manifest) -> None:
    selected = exclusions.selection(manifest, ["tickit.sale"], "tickets")
    line = exclusions.summary(manifest, ["tickit.sale", "moma.artists"], "tickets")

    assert selected[:2] == ["--select", "+group:tickets"]
    assert selected[-1] == "source:tickit.sale+"
    assert "tests of code, all but the group tickets, " in line
    assert line == exclusions.summary(manifest, ["tickit.sale", "moma.x"], "tickets")


def test_of_this_project_the_sales_of_both_shops_stay(manifest: Manifest) -> None:
    captured = exclusions.unfilled(manifest, lambda _table: False)
    stay = set(manifest["nodes"]) - exclusions.readers(manifest, captured)

    assert "moma.artists" in captured
    assert "pagila.sales" not in captured
    for name in ("fct_regional_sales_windows", "rpt_product_sales", "rpt_ingest_ledger"):
        assert f"model.millrace.{name}" in stay
    for name in ("dim_artists", "int_ops__captured_rows_moved", "rpt_reconciliation"):
        assert f"model.millrace.{name}" not in stay
    # Each of them is the test of some macro: one of data reads what it tests.
    files = {
        manifest["nodes"][name]["original_file_path"] for name in exclusions.macro_tests(manifest)
    }
    assert files
    assert all(file.startswith("tests/dbt/macros/") for file in files)
