"""What ``stack/test_planted_faults.py`` plants fits the data tests as they are.

Fails when a data test has no fault of its own, or a fault changes what its SQL does not say.
"""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from tests.python.render.conftest import Rendered
from tests.python.stack.test_planted_faults import GENERIC, OF_MACROS, SINGULAR

TESTS = PROJECT / "tests/dbt"


def test_each_data_test_has_a_fault() -> None:
    generic = {file.stem for file in (TESTS / "generic").glob("*.sql")}
    singular = {file.stem for file in TESTS.glob("*/*.sql")} - generic

    assert generic - GENERIC.keys() == set()
    assert singular == SINGULAR.keys() | OF_MACROS.keys()


@pytest.mark.parametrize("name", OF_MACROS)
def test_a_fault_of_a_macro_changes_its_sql(rendered: Rendered, name: str) -> None:
    (sql,) = {
        text.sql
        for text in rendered.texts["spark"]
        if text.path.endswith(f"/{name}.sql")
    }

    assert [right for right, _ in OF_MACROS[name] if right not in sql] == []
