"""Which rows of a mart of captured tables an increment makes anew, asked of DuckDB."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.python.unit.dbt.test_change_histories import Captured, Table
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros
from tests.python.unit.dbt.test_increment_macros import (
    FACT,
    Node,
    increment,
    macros,
    node,
    recorded_day,
    recorded_read,
)

SALE, USER = "marts.sale_history", "marts.user_history"
PARENTS = (
    {"stream": "shop.sale", "table": "sale", "key": "sale_id"},
    {
        "stream": "shop.user",
        "table": "user",
        "key": "user_id",
        "columns": ["buyer_id", "seller_id"],
    },
)


class Relation(Table):
    schema = "marts"


def source(table: str, **options: Any) -> Node:
    captured = Captured({"form": "flattened", "key": [f"{table}_id"], **options})
    return Node(
        source_name="shop",
        name=table,
        schema="bronze",
        identifier=f"shop__{table}",
        original_file_path="a.yml",
        columns={},
        config=SimpleNamespace(
            meta=SimpleNamespace(
                ingest=Captured(captured=captured),
                get=lambda _name, _default: {"captured": captured},
            )
        ),
    )


def model(name: str, materialized: str, *parents: str) -> Node:
    versions = {"package_name": "millrace", "version": None, "latest_version": None}
    return Node(node(name, materialized, *parents) | versions)


def made(which: str = "run", **options: Any) -> Macros:
    """The macros, in a project of two captured tables; ``options`` are of users."""
    relation = SimpleNamespace(
        create=lambda schema, identifier, **_: Relation(f"{schema}.{identifier}")
    )
    return macros(
        settings={"log_restarts": {}},
        api=SimpleNamespace(Relation=relation),
        flags=SimpleNamespace(EMPTY=False, FULL_REFRESH=False, WHICH=which),
        graph={
            # Ingest's log says nothing of the tables in bronze.
            "millrace one": {"bronze identities": {}},
            "sources": {
                "sale": source("sale"),
                "user": source("user", **options),
            },
            "nodes": {
                "stg_sale": model("stg_sale", "view"),
                "stg_user": model("stg_user", "view"),
                "sale_history": model("sale_history", "incremental", "stg_sale"),
                "user_history": model("user_history", "incremental", "stg_user"),
                "fct_sales": model("fct_sales", "incremental", "user_history"),
            },
        },
        this=Relation("fct_sales"),
    )


def parents() -> list[dict[str, Any]]:
    return [
        {**parent, "history": Relation(f"{parent['table']}_history")}
        for parent in PARENTS
    ]


def grown(**other: Any) -> dict[str, Any]:
    """An increment of the mart, which read up to commit 4; its histories have read to 6."""
    return increment(
        recorded={
            "reads": [
                recorded_read(FACT, "shop.sale", 4, 7),
                recorded_read(FACT, "shop.user", 4, 7),
                recorded_read(FACT, SALE, 3, 7),
                recorded_read(FACT, USER, 3, 7),
                recorded_read(SALE, "shop.sale", 6, 4),
                recorded_read(USER, "shop.user", 6, 4),
            ],
            "days": [],
        },
        **other,
    )


def keys(query: str) -> list[int]:
    """The keys that a query gives of a mart of three sales, with changes in every commit."""
    engine = duckdb.connect()
    engine.execute("create schema marts")
    for table, changes in (
        ("sale", [(1, 4), (4, 5), (5, 6), (6, 7), (None, 5)]),
        ("user", [(10, 4), (20, 5), (30, 7)]),
    ):
        engine.execute(
            f"create table marts.stg_{table} ({table}_id int, _commit_id int)"
        )
        engine.executemany(f"insert into marts.stg_{table} values (?, ?)", changes)
    engine.execute("create table fct_sales (sale_id int, buyer_id int, seller_id int)")
    engine.execute(
        "insert into fct_sales values (1, 10, 30), (2, 20, 10), (3, 30, 20), (7, 30, 10)"
    )
    return sorted(row[0] for row in engine.execute(query).fetchall())


def test_what_changed_and_what_names_a_row_that_changed_is_made_anew() -> None:
    found = grown()

    query = made().changed_keys(found, "sale_id", parents())

    # Sales 4 and 5 have new changes; user 20 has one, who bought 2 and sold 3. Commit 7 is for
    # the next increment: the histories have not read it.
    assert keys(query) == [2, 3, 4, 5]
    assert keys(found["own_changes"]) == [4, 5]
    assert found["reads"]["shop.user"] | {"table_uuid": None} == {
        "after": 4,
        "to": 6,
        "table_uuid": None,
        "table_since": 0,
    }


def test_a_history_that_was_rebuilt_has_the_mart_rebuilt() -> None:
    found = grown()
    found["recorded"]["days"] = [recorded_day(None, 4, USER, is_onwards=True)]

    made().changed_keys(found, "sale_id", parents())

    assert found["is_everything"]


def test_a_history_that_nobody_recorded_stops_the_increment() -> None:
    found = grown()
    found["recorded"]["reads"] = [
        one for one in found["recorded"]["reads"] if one["model_name"] != USER
    ]

    with pytest.raises(CompilerError, match=r"marts\.user_history has no read point"):
        made().changed_keys(found, "sale_id", parents())


def test_a_table_that_may_be_emptied_at_once_is_no_parent() -> None:
    with pytest.raises(CompilerError, match=r"a TRUNCATE of shop\.user names none"):
        made(truncates_when="true").changed_keys(grown(), "sale_id", parents())
