"""A run commits what is new: a table or a view that is as it would be stays as it is.

Fails when a run with nothing new commits a fact or a view, or a changed description never comes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import do_steps
from tests.python.world.records import DAYS, Records

SALES = "fct_rental_sales"
TABLE = f"marts.{SALES}"
VIEW = "stg_pagila__sales"
RUN = ["run", "--select", f"+{SALES}"]
COMMITS = {"sql": f"select count(*) from {TABLE}.metadata_log_entries"}
DESCRIBED = {"sql": f"describe extended {TABLE}"}
WORDS = "One row per sale: "
NEW_WORDS = "One row per sale, by the shop's own words: "
COLUMN = """      - name: payment_id
        description: "{{ doc('payment_id') }}\""""
NEW_COLUMN = """      - name: payment_id
        description: The payment's number."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("unchanged")


@pytest.fixture(scope="module")
def found(home: Home, lake: Path) -> dict[str, Any]:
    project = copy_project(lake / "project")
    described = str(project / f"models/marts/rentals/{SALES}.yml")
    sales = Records(seed=4).some(20, DAYS, newest=50)["bronze.pagila__sales"]
    steps: dict[str, dict[str, Any]] = {
        "sales": {"commit": "bronze.pagila__sales", "rows": sales},
        "built": {"dbt": ["build", *RUN[1:], "--exclude-resource-type", "test", "unit_test"]},
        "commits": COMMITS,
        "nothing new": {"dbt": RUN},
        "commits then": COMMITS,
        "new words": {"replace": {"file": described, "old": WORDS, "new": NEW_WORDS}},
        "new column": {"replace": {"file": described, "old": COLUMN, "new": NEW_COLUMN}},
        "described": {"dbt": RUN},
        "descriptions": DESCRIBED,
        "widened": {
            "sql": "alter table bronze.pagila__sales alter column _kafka_partition type bigint"
        },
        "read wider": {"dbt": ["run", "--select", VIEW]},
        "view": {"read": [f"staging.{VIEW}"]},
    }
    return dict(zip(steps, do_steps(lake, list(steps.values()), project), strict=True))


@pytest.mark.nightly
def test_a_run_with_nothing_new_commits_no_fact(found: dict[str, Any]) -> None:
    for step in ("built", "nothing new", "described", "read wider"):
        assert found[step]["success"], found[step]["said"]
    assert found["commits then"] == found["commits"]


@pytest.mark.nightly
def test_changed_descriptions_come_with_the_next_run(found: dict[str, Any]) -> None:
    comments = {name: comment for name, _, comment in found["descriptions"]}
    details = {name: value for name, value, _ in found["descriptions"]}

    assert comments["payment_id"] == "The payment's number."
    assert details["Comment"].startswith(NEW_WORDS)


@pytest.mark.nightly
def test_a_view_is_recreated_only_when_it_would_be_another(
    found: dict[str, Any], lake: Path
) -> None:
    """Its metadata has a file for each time: the first, and when what it reads has other types."""
    metadata = lake / "sand box" / "lake" / "warehouse" / "staging" / VIEW / "metadata"

    assert len(list(metadata.glob("*.metadata.json"))) == 2
    assert ["_kafka_partition", "bigint"] in found["view"][f"staging.{VIEW}"]["columns"]
