"""What ``stack/test_planted_faults.py`` plants fits the data tests as they are.

Fails when a data test has no fault of its own, or a fault changes what its SQL does not say.
"""

from __future__ import annotations

import pytest

from sandbox.settings import PROJECT
from tests.python.mutations.planting import entries
from tests.python.render.conftest import Rendered
from tests.python.stack.test_planted_faults import GENERIC

TESTS = PROJECT / "tests/dbt"
SINGULAR = entries("data_tests")
OF_MACROS = [name for name, faults in SINGULAR.items() if "old" in faults[0]]


def test_each_data_test_has_a_fault() -> None:
    generic = {file.stem for file in (TESTS / "generic").glob("*.sql")}
    singular = {file.stem for file in TESTS.glob("*/*.sql")} - generic

    assert generic - GENERIC.keys() == set()
    assert singular == SINGULAR.keys()


@pytest.mark.parametrize("name", OF_MACROS)
def test_a_fault_of_a_macro_changes_its_sql(rendered: Rendered, name: str) -> None:
    (sql,) = {text.sql for text in rendered.texts["spark"] if text.path.endswith(f"/{name}.sql")}

    assert [one for one in SINGULAR[name] if one["old"] not in sql] == []
