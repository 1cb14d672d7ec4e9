"""Incremental models as dbt teaches them grow beside the project's own.

The smallest part of ``tests/python/parity/test_adopter.py``.

Fails when a model with ``is_incremental()`` does not get its new rows.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.settings import Home
from tests.python.adopter import FIRST, MODELS, ROWS, THEN, adopted_project
from tests.python.spark.lake_steps import do_steps

# Without the snapshot that the mart reads.
GROWN = ("crm_payments", "int_crm__accounts_synced")
RUN = ["run", "--select", *GROWN]


@pytest.fixture(scope="module")
def results(home: Home, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("adopter")
    project = adopted_project(folder / "project")
    tables = [MODELS[name] for name in GROWN]
    return do_steps(
        folder,
        [
            {"in order": [{"sql": statement} for statement in FIRST]},
            {"dbt": RUN},
            {"in order": [{"sql": statement} for statement in THEN]},
            {"dbt": RUN},
            {"read": tables},
        ],
        project,
    )


@pytest.mark.parametrize("name", GROWN)
def test_an_incremental_model_of_ones_own_grows(results: list[Any], name: str) -> None:
    assert [of["said"] for of in results if "said" in of] == [""] * 2
    found = results[-1][MODELS[name]]["rows"]

    assert sorted(tuple(row) for row in found) == ROWS["then"][MODELS[name]]
