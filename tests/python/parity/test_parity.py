"""Both engines hold the same in every cell, after a first build and after increments.

Fails when a cell of any model or analysis differs between the two engines, or a test fails on
one of them.
"""

from __future__ import annotations

import re

import pytest

from sandbox.settings import PROJECT
from tests.python.parity import museum_page
from tests.python.parity.compare import Difference
from tests.python.parity.relations import Cell
from tests.python.parity.trial import ANALYSES, ENGINES, ROUNDS, STATE, Trial, relations

pytestmark = pytest.mark.all_models

RUNS_SOURCE = "source.millrace.dbt.runs"
INCREMENTAL = [
    f"{file.parent.parent.name}.{file.stem}"
    for file in sorted(PROJECT.glob("models/*/*/*.sql"))
    if 'materialized="incremental"' in file.read_text()
]


def of_runs(trial: Trial) -> set[str]:
    """What is built from the runs of dbt."""
    found, todo = set[str](), [RUNS_SOURCE]
    while todo:
        below = trial.manifest["child_map"][todo.pop()]
        todo += [name for name in below if name not in found]
        found.update(below)
    return found


@pytest.mark.parametrize("round_name", ROUNDS)
@pytest.mark.parametrize("relation", [*relations(), *STATE])
def test_both_engines_hold_the_same(trial: Trial, relation: str, round_name: str) -> None:
    found = trial.compared[round_name][relation]

    assert not found.differences, "\n".join(map(str, found.differences[:20]))
    assert found.spark.rows


@pytest.mark.parametrize("figure", museum_page.figures())
def test_the_dashboard_shows_of_the_museum_what_spark_has(trial: Trial, figure: str) -> None:
    by_spark = trial.compared["odd"][f"{ANALYSES}.{figure}"].spark

    assert sorted(map(str, trial.shown[figure])) == sorted(map(str, by_spark.rows))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("round_name", ROUNDS)
def test_dbt_has_nothing_to_complain_of(trial: Trial, round_name: str, engine: str) -> None:
    assert trial.built[round_name].failures[engine] == {}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("round_name", ROUNDS)
def test_what_became_of_each_node_is_recorded(trial: Trial, round_name: str, engine: str) -> None:
    ran: set[tuple[Cell, Cell]] = {
        (node_id, status)
        for node_id, status in trial.built[round_name].statuses[engine].items()
        if node_id.partition(".")[0] in {"model", "seed", "test", "unit_test"}
    }

    assert ran
    assert ran - trial.built[round_name].recorded[engine] == set()


def test_spark_tests_and_redshift_refuses_a_null_where_one_is_required(trial: Trial) -> None:
    spark, redshift = (trial.refused[engine] for engine in ENGINES)

    assert not spark["success"]
    assert "key_and_required_columns_fct_rental_sales_payment_id: Got " in spark["said"]
    assert not redshift["success"]
    assert re.search(r'null value in column "\w+" .* violates not-null', redshift["said"])


def test_every_model_and_seed_of_the_manifest_is_compared(trial: Trial) -> None:
    # Apart from what is about the engine's own invocations of dbt.
    known = {
        f"{node['schema']}.{node['name']}"
        for node_id, node in trial.manifest["nodes"].items()
        if node["resource_type"] in {"model", "seed"} and node_id not in of_runs(trial)
    }

    assert known == set(relations())


def test_all_tests_ran_on_the_stand_in(trial: Trial) -> None:
    ran = {
        node_id: status
        for name in ("first", "increment")
        for node_id, status in trial.built[name].statuses[ENGINES[1]].items()
    }
    known = {
        node_id
        for kind in ("nodes", "unit_tests")
        for node_id in trial.manifest[kind]
        if node_id.startswith(("test.", "unit_test."))
    }

    assert known - ran.keys() == set()
    assert {ran[node_id] for node_id in known} == {"pass"}


def test_the_docs_of_the_stand_in_have_every_model_with_its_layout(trial: Trial) -> None:
    wanted = {
        name: node
        for name, node in trial.manifest["nodes"].items()
        if node["resource_type"] in {"model", "seed"}
    }

    assert set(trial.catalog["nodes"]) == set(wanted)
    assert not trial.catalog["errors"]
    for name, node in wanted.items():
        found = trial.catalog["nodes"][name]
        assert set(found["columns"]) >= set(node["columns"]), name
        if node["config"].get("dist"):
            style = found["stats"]["diststyle"]["value"]
            assert node["config"]["dist"].lower() in style.lower(), name
            assert found["stats"]["sortkey1"]["value"], name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("round_name", ["increment", "odd"])
@pytest.mark.parametrize("table", INCREMENTAL)
def test_facts_and_histories_grow_by_increments(
    trial: Trial, table: str, round_name: str, engine: str
) -> None:
    made = trial.compared["first"][table].identities[engine]

    assert made
    assert trial.compared[round_name][table].identities[engine] == made


def test_a_table_that_is_recreated_would_be_distinguished_from_one_that_grew(trial: Trial) -> None:
    before = trial.compared["first"]["marts.rpt_country_sales"].identities
    after = trial.compared["increment"]["marts.rpt_country_sales"].identities

    assert all(before[engine] != after[engine] for engine in ENGINES)


def test_every_incremental_model_is_among_these(trial: Trial) -> None:
    known = {
        f"{node['schema']}.{node['name']}"
        for node in trial.manifest["nodes"].values()
        if node["config"].get("materialized") == "incremental"
    }

    assert known == set(INCREMENTAL)


def test_the_rounds_hold_arrays_with_a_null_without_elements_and_none(trial: Trial) -> None:
    films = trial.compared["increment"]["staging.stg_pagila__film"].spark
    at = [column.name for column in films.columns].index("special_features")

    assert {"Trailers, null, Deleted Scenes", "", None} <= {row[at] for row in films.rows}


def test_the_rounds_hold_what_the_ledger_is_for(trial: Trial) -> None:
    ledger = trial.compared["odd"]["marts.rpt_ingest_ledger"].spark
    names = [column.name for column in ledger.columns]

    for count in (
        "replayed_count", "discarded_count", "empty_count", "given_up_count", "gap_count",
        "duplicate_count", "uncommitted_count",
    ):  # fmt: skip
        at = names.index(count)
        assert any(row[at] not in {"0", None} for row in ledger.rows), count


def test_a_difference_says_where_and_what() -> None:
    found = Difference("'7'", "sale_amount", "'1.00'", "'1.01'")

    assert str(found) == "'7', sale_amount: '1.00' on Spark, '1.01' on the emulator"
