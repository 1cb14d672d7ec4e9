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
USERS = {"stream": "shop.user", "table": "user", "key": "user_id"}
PARENTS = (
    {"stream": "shop.sale", "table": "sale", "key": "sale_id"},
    USERS | {"column": "buyer_id", "attributes": {"buyer_name": "upper(name)"}},
    USERS | {"column": "seller_id", "attributes": {"seller_name": "upper(name)"}},
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
    """The keys that a query gives of a mart of eight sales, with changes in every commit.

    User 20 was Bea until May, whom a late change makes Bo in March. User 50 came later than sale 8.
    """
    engine = duckdb.connect()
    engine.execute("create schema marts")
    for table, changes in (
        ("sale", [(1, 4), (4, 5), (5, 6), (6, 7), (None, 5)]),
        ("user", [(10, 4), (20, 5), (30, 7), (40, 5), (50, 6)]),
    ):
        engine.execute(
            f"create table marts.stg_{table} ({table}_id int, _commit_id int)"
        )
        engine.executemany(f"insert into marts.stg_{table} values (?, ?)", changes)
    engine.execute(
        """
        create table user_history as select * from (values
            (10, 'al', '1', timestamp '2026-01-01', null),
            (20, 'bea', '1', timestamp '2026-02-01', timestamp '2026-03-01'),
            (20, 'bo', '2', timestamp '2026-03-01', timestamp '2026-05-01'),
            (20, 'bill', '3', timestamp '2026-05-01', null),
            (40, null, '1', timestamp '2026-01-01', null),
            (50, 'eve', '1', timestamp '2026-06-01', null)
        ) as _(user_id, name, valid_from_position, valid_from_at, valid_to_at)
        """
    )
    engine.execute(
        """
        create table fct_sales as select * from (values
            (1, 10, 'AN', 30, null, timestamp '2026-01-01'),
            (2, 20, 'BEA', 10, 'AL', timestamp '2026-01-01'),
            (3, 10, 'AL', 20, 'BEA', timestamp '2026-03-01'),
            (7, 20, 'BILL', 10, 'AL', timestamp '2026-05-01'),
            (8, 40, null, 50, null, timestamp '2026-04-01'),
            (9, 40, null, 10, 'AL', timestamp '2026-04-01'),
            (10, 40, 'DEE', 10, 'AL', timestamp '2026-04-01'),
            (11, 20, 'BEA', 50, 'EVE', timestamp '2026-04-01')
        ) as _(sale_id, buyer_id, buyer_name, seller_id, seller_name, recorded_at)
        """
    )
    return sorted(row[0] for row in engine.execute(query).fetchall())


def query_of(found: dict[str, Any], **options: Any) -> str:
    query: str = made(**options).changed_keys(
        found, "sale_id", "recorded_at", parents()
    )
    return query


def test_rows_with_new_changes_and_rows_that_differ_as_of_then_are_made_anew() -> None:
    found = grown()

    query = query_of(found)

    # Sales 4 and 5 have new changes. Of the users with new changes 20 was Bo when sale 3 and sale
    # 11 were recorded, 50 was there before sale 8, and 40 had no name at sale 10; what became of
    # 20 later leaves sale 2 as it is. User 10 has no new change. Commit 7 is for the next
    # increment: the histories have not read it.
    assert keys(query) == [3, 4, 5, 8, 10, 11]
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

    query_of(found)

    assert found["is_everything"]


def test_a_history_that_nobody_recorded_stops_the_increment() -> None:
    found = grown()
    found["recorded"]["reads"] = [
        one for one in found["recorded"]["reads"] if one["model_name"] != USER
    ]

    with pytest.raises(CompilerError, match=r"marts\.user_history has no read point"):
        query_of(found)


def test_a_table_that_may_be_emptied_at_once_is_no_parent() -> None:
    with pytest.raises(CompilerError, match=r"a TRUNCATE of shop\.user names none"):
        query_of(grown(), truncates_when="true")
