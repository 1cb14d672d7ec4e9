"""What is sent to Spark when nothing has changed, and when something has.

Fails when a description or a view that is as it should be is sent again, or a changed one is not.
"""

from __future__ import annotations

import json
import re
from hashlib import md5
from types import SimpleNamespace
from typing import Any

import pytest

from tests.python.unit.dbt.test_dbt_macros import Macros

COLUMNS = {"Id": "The sale.", "note": "Its seller's words.", "plain": ""}
# As `describe extended` answers: columns, how they are partitioned, then the table.
DESCRIBED = [
    ["id", "int", "The sale."],
    ["note", "string", "Its seller's words."],
    ["plain", "string", None],
    ["# Partitioning", "", ""],
    ["Part 0", "days(at)", ""],
    ["", "", ""],
    ["# Detailed Table Information", "", ""],
    ["Comment", "One row per sale.", ""],
]
VIEW = "create view v (\n  a)\nTBLPROPERTIES (\n  'millrace.view' = '{}')\nAS\n{}\n"


def model(description: str = "One row per sale.", **columns: str) -> SimpleNamespace:
    described = {
        name: SimpleNamespace(name=name, description=text, data_type="int")
        for name, text in {**COLUMNS, **columns}.items()
    }
    return SimpleNamespace(description=description, columns=described)


class Config(SimpleNamespace):
    def get(self, name: str) -> Any:
        return vars(self)[name]

    def persist_relation_docs(self) -> bool:
        return bool(self.is_described)

    persist_column_docs = persist_relation_docs


def persisted(
    of: SimpleNamespace, kind: str = "incremental", *, is_described: bool = True
) -> list[Any]:
    """What `persist_docs` sends for a table that is described as ``DESCRIBED`` says."""
    sent: list[Any] = []

    def run_query(statement: str) -> SimpleNamespace:
        sent.append(statement)
        return SimpleNamespace(rows=DESCRIBED)

    contract = SimpleNamespace(enforced=True)
    Macros(
        context={
            "config": Config(is_described=is_described, materialized=kind, contract=contract),
            "run_query": run_query,
            "validate_doc_columns": lambda _, columns, there: {
                name: column for name, column in columns.items() if name.lower() in there
            },
            "alter_column_comment": lambda _, columns: sent.append(list(columns)),
        }
    ).spark__persist_docs("marts.t", of, True, True)
    return sent


ASKED = "describe extended marts.t"


@pytest.mark.parametrize(
    ("changed", "sent"),
    [
        (model(), [ASKED, []]),
        (model(note="Other words."), [ASKED, ["note"]]),
        (model(missing="No such column."), [ASKED, []]),
        (model("One row's."), [ASKED, "comment on table marts.t is 'One row\\'s.'", []]),
        (model(""), [ASKED, []]),
    ],
)
def test_only_descriptions_that_changed_are_sent(changed: SimpleNamespace, sent: list[Any]) -> None:
    assert persisted(changed) == sent


def test_a_table_made_by_its_contract_gets_all_of_them_without_a_question() -> None:
    assert persisted(model(), "table") == [list(COLUMNS)]


@pytest.mark.parametrize("kind", ["table", "incremental"])
def test_nothing_is_described_where_docs_are_not_kept(kind: str) -> None:
    assert persisted(model(note="Other words."), kind, is_described=False) == []


def view(
    there: str = VIEW,
    sql: str = "select 1 as a",
    *,
    kind: str = "view",
    is_whole: bool = False,
    comment: str = "comment 'One row.'",
    column_type: str = "int",
    is_cut: bool = False,
    code: str = "",
    schema: str | None = "staging",
) -> list[str]:
    """What is sent for a view that was made of `select 1 as a`, with the statement at the end.

    Args:
        there: What `show create table` answers.
        sql: The view's text now.
        kind: What stands under its name.
        is_whole: Whether it is a full refresh.
        comment: The clause that describes it.
        column_type: The type of its column.
        is_cut: Whether that was its type before, as far as Spark shows it.
        code: The property with the checksum of its code, which the view lacks.
        schema: Its schema, which the staging view of a snapshot does not have.
    """
    sent: list[str] = []
    before = column_type if is_cut else "int"
    made = checksum(before, "comment 'One row.'", f"properties (){code}", "select 1 as a")

    def run_query(statement: str) -> Any:
        sent.append(statement)
        if statement.startswith("describe query"):
            return [{"col_name": "a", "data_type": column_type}]
        return SimpleNamespace(rows=[[there.format(made, "select 1 as a")]])

    found = SimpleNamespace(is_view=True) if kind == "view" else None

    def get_relation(_: str, schema: str, __: str) -> Any:
        # As the adapter, which looks into its cache.
        assert schema.lower()
        return found

    relation = Relation("staging.v")
    relation.schema = schema
    context = Macros(
        context={
            "adapter": SimpleNamespace(get_relation=get_relation),
            "comment_clause": lambda: comment,
            "config": Config(is_described=True, contract=SimpleNamespace(enforced=False)),
            "get_persist_docs_column_list": lambda _, types: ", ".join(types),
            "local_md5": lambda text: md5(text.encode()).hexdigest(),
            "model": model(),
            "run_query": run_query,
            "should_full_refresh": lambda: is_whole,
            "modules": SimpleNamespace(re=re),
            "spark__tblproperties_clause": lambda others=(): f"properties {others}{code}",
            "tojson": json.dumps,
        }
    )
    statement = context.spark__create_view_as(relation, sql)
    return [*sent, " ".join(statement.split())]


class Relation(str):
    """Its name in SQL, its parts for the catalogue."""

    __slots__ = ("schema",)
    database, identifier = "", "v"
    schema: str | None


def checksum(column_type: str, comment: str, properties: str, sql: str) -> str:
    parts = [{"a": column_type}, "\n    (a)", comment, properties, [], sql]
    return md5(json.dumps(parts).encode()).hexdigest()


QUESTIONS = ["describe query select 1 as a", "show create table staging.v"]


def test_a_view_that_is_there_as_it_would_be_is_left_alone() -> None:
    assert view() == [*QUESTIONS, "select 'nothing is new' as outcome"]


@pytest.mark.parametrize(
    "changed",
    [
        {"sql": "select 2 as a"},
        {"comment": "comment 'Other words.'"},
        # What it reads has another type now.
        {"column_type": "bigint"},
        # Somebody has replaced it by hand.
        {"there": VIEW.replace("{}\n", "select 3 as a\n")},
        # Somebody has unset the checksum of its code.
        {"code": "'millrace.code' = '0123456789ab'"},
        # It may have.
        {"column_type": "struct<a:int,... 25 more fields>", "is_cut": True},
        {"kind": "nothing"},
        {"is_whole": True},
        {"schema": None},
    ],
)
def test_any_other_view_is_recreated(changed: dict[str, Any]) -> None:
    *_, statement = view(**changed)

    assert statement.startswith("create or replace view staging.v (a) comment '")
    assert "'millrace.view'" in statement
    assert statement.endswith(f" as {changed.get('sql', 'select 1 as a')}")
