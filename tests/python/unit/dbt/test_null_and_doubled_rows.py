"""What the tests of a model's key and required columns find, in rows that break them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros

# Constraints by column of a model with rows of a Kafka topic.
RECORDS = {"topic": ["not_null"], "position": [], "paid": ["not_null"], "note": []}


def query(columns: dict[str, list[str]], **arguments: Any) -> str:
    """The query for a model that is called `records`."""
    node = SimpleNamespace(
        name="records",
        relation_name="records",
        columns={
            name: SimpleNamespace(name=name, constraints=[{"type": kind} for kind in kinds])
            for name, kinds in columns.items()
        },
    )
    graph = SimpleNamespace(nodes={"model.records": node}, sources={})
    made = Macros("redshift", context={"graph": graph})
    return str(made.null_and_doubled_rows("records", **arguments))


def found(rows: str, **arguments: Any) -> list[tuple[Any, ...]]:
    """What it finds in rows of topic, position, paid and note."""
    asked = query(RECORDS, **arguments)
    with duckdb.connect() as lake:
        lake.execute("create table records (topic text, position int, paid int, note text)")
        lake.execute(f"insert into records values {rows}")
        return sorted(lake.sql(asked).fetchall())


def test_a_column_is_required_by_its_constraint_or_under_a_condition() -> None:
    rows = "('a', 1, null, null), ('a', 2, null, null), ('b', 3, 5, null), (null, 4, 5, 'x')"

    # Numbers of nulls in topic, paid and note, and of rows with any.
    assert found(rows, columns_where={"position > 2": ["note"]}) == [(1, 2, 1, 4)]


def test_a_condition_of_several_parts_is_one() -> None:
    rows = "('a', 1, 5, null), ('b', 2, 5, 'x'), ('c', 3, 5, null)"

    assert found(rows, columns_where={"position = 1 or position = 2": ["note"]}) == [(0, 0, 1, 1)]


def test_each_doubled_key_is_reported_with_its_number_of_rows() -> None:
    rows = "('a', 1, 5, ''), ('b', 1, 5, ''), ('b', 1, 6, ''), ('b', 1, 7, ''), ('b', 2, 5, '')"

    assert found(rows, columns_where={}, key=["topic", "position"]) == [("b", 1, 0, 0, 3)]


def test_both_are_reported_of_the_same_rows() -> None:
    rows = "('a', 1, null, ''), ('a', 1, 5, ''), ('b', 2, null, '')"

    assert found(rows, columns_where={}, key=["topic", "position"]) == [
        ("a", 1, 0, 1, 2),
        ("b", 2, 0, 1, 1),
    ]


def test_a_null_in_a_key_equals_a_null() -> None:
    rows = "('a', null, 5, ''), ('a', null, 5, ''), ('b', null, 5, '')"

    assert found(rows, columns_where={}, key=["topic", "position"]) == [("a", None, 0, 0, 2)]


@pytest.mark.parametrize("key", [[], ["topic"]])
def test_nothing_is_reported_of_good_rows_nor_of_none(key: list[str]) -> None:
    assert found("('a', 1, 5, null)", columns_where={}, key=key) == []
    assert found("('a', 1, 5, null) limit 0", columns_where={}, key=key) == []


def test_a_model_that_requires_nothing_is_a_mistake() -> None:
    with pytest.raises(CompilerError, match="no column has a not_null constraint"):
        query({"note": []}, columns_where={}, key=["note"])
