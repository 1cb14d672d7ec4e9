"""A full refresh that fails leaves the table of an incremental model as it was.

Fails when a full refresh that the contract refuses, or whose query fails, takes rows with it.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.project_copy import copy_project
from tests.python.spark.lake_steps import do_steps
from tests.python.world.records import DAYS, Records

SALES = "fct_rental_sales"
TABLE = f"marts.{SALES}"
BUILD = ["build", "--select", f"+{SALES}"]
BUILD += ["--exclude-resource-type", "test", "unit_test"]
RUN = ["run", "--select", SALES]
REFRESH = [*RUN, "--full-refresh"]
COLUMN = "        sale_amount,\n"
FAILURES = {
    # A type that the contract does not have: dbt sees it before the table is made.
    "refused": "        cast(sale_amount as decimal(18, 3)) as sale_amount,\n",
    # Spark sees it while rows are written.
    "dead": "        cast(raise_error('dead') as decimal(18, 2)) as sale_amount,\n",
}


@pytest.fixture(scope="module")
def found(home: Home, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("refreshes")
    project = copy_project(folder / "project")
    model = str(project / f"models/marts/rentals/{SALES}.sql")
    records = Records(seed=4)
    steps: dict[str, dict[str, Any]] = {}

    def sell(name: str, count: int) -> None:
        rows = records.some(count, DAYS, newest=50)["bronze.pagila__sales"]
        steps[name] = {"commit": "bronze.pagila__sales", "rows": rows}

    sell("sales", 20)
    steps["built"] = {"dbt": BUILD}
    steps["before"] = {"read": [TABLE]}
    for name, column in FAILURES.items():
        edit = {"file": model, "old": COLUMN, "new": column}
        back = {"file": model, "old": column, "new": COLUMN}
        steps[f"{name}, edit"] = {"replace": edit}
        steps[name] = {"dbt": REFRESH}
        steps[f"after {name}"] = {"read": [TABLE]}
        steps[f"{name}, edit back"] = {"replace": back}
    sell("more sales", 10)
    steps["went on"] = {"dbt": RUN}
    steps["increments"] = {"read": [TABLE]}
    steps["refreshed"] = {"dbt": REFRESH}
    steps["whole"] = {"read": [TABLE]}
    results = do_steps(folder, list(steps.values()), project)
    return dict(zip(steps, results, strict=True))


def rows(read: dict[str, Any]) -> list[str] | None:
    """The table's rows in order; none: there is no table."""
    return sorted(map(str, read[TABLE]["rows"])) if TABLE in read else None


@pytest.mark.nightly
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_full_refresh_leaves_the_rows(found: dict[str, Any], failure: str) -> None:
    assert rows(found["before"])
    assert not found[failure]["success"]
    assert rows(found[f"after {failure}"]) == rows(found["before"])


@pytest.mark.nightly
def test_the_next_increment_goes_on_from_them(found: dict[str, Any]) -> None:
    for step in ("built", "went on", "refreshed"):
        assert found[step]["success"], found[step]["said"]
    assert rows(found["increments"]) != rows(found["before"])
    assert rows(found["increments"]) == rows(found["whole"])
