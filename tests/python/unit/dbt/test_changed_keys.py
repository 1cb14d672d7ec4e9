"""Which rows of a mart of captured tables an increment rewrites, run on DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from tests.python.unit.dbt.test_change_histories import Captured
from tests.python.unit.dbt.test_dbt_macros import CompilerError, Macros, Table
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
# What somebody computes of the sales themselves; a mart has of it what it says now.
FIRST_SALES = {
    "table": "first_sales",
    "key": "user_id",
    "column": "buyer_id",
    "attributes": {"first_sale_id": "first_sale_id"},
}


def source(table: str, **options: Any) -> Node:
    captured = Captured({"form": "flattened", "key": [f"{table}_id"], **options})
    return Node(
        source_name="shop",
        name=table,
        schema="bronze",
        identifier=f"shop__{table}",
        original_file_path="a.yml",
        columns={f"{table}_id": Node(name=f"{table}_id", data_type="int")},
        config=SimpleNamespace(
            meta=SimpleNamespace(
                ingest=Captured(captured=captured),
                get=lambda _name, _default=None: {"captured": captured},
            )
        ),
    )


def model(name: str, materialized: str, *parents: str) -> Node:
    versions = {"package_name": "millrace", "version": None, "latest_version": None}
    return Node(node(name, materialized, *parents) | versions)


def made(
    which: str = "run", run_query: Callable[[str], SimpleNamespace] | None = None, **options: Any
) -> Macros:
    """The macros, in a project of two captured tables; ``options`` are of users."""
    relation = SimpleNamespace(
        create=lambda schema, identifier, **_: Table(f"{schema}.{identifier}")
    )
    return macros(
        settings={"log_restarts": {}},
        api=SimpleNamespace(Relation=relation),
        flags=SimpleNamespace(EMPTY=False, FULL_REFRESH=False, WHICH=which),
        graph={
            # Ingest's log says nothing of the tables in bronze.
            "millrace one": {"bronze identities": {}},
            "sources": {"sale": source("sale"), "user": source("user", **options)},
            "nodes": {
                "stg_sale": model("stg_sale", "view", "sale"),
                "stg_user": model("stg_user", "view", "user"),
                "regions": model("regions", "seed"),
                # Its changes are not what it names first.
                "sale_history": model("sale_history", "incremental", "regions", "stg_sale"),
                "user_history": model("user_history", "incremental", "stg_user"),
                "first_sales": model("first_sales", "view", "sale_history"),
                "fct_sales": model("fct_sales", "incremental", "user_history"),
            },
        },
        this=Table("fct_sales"),
        load_relation=lambda relation: relation,
        run_query=run_query or (lambda _: SimpleNamespace(rows=[[0]])),
    )


def parents() -> list[dict[str, Any]]:
    return [
        *({**of, "relation": Table(f"{of['table']}_history")} for of in PARENTS),
        {**FIRST_SALES, "relation": Table("first_sales")},
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
        engine.execute(f"create table marts.stg_{table} ({table}_id int, _commit_id int)")
        engine.executemany(f"insert into marts.stg_{table} values (?, ?)", changes)
    engine.execute(
        """
        create table user_history as select *, valid_to_at is null as is_current from (values
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
            (1, 10, 'AN', 30, null, timestamp '2026-01-01', 1),
            (2, 20, 'BEA', 10, 'AL', timestamp '2026-01-01', 2),
            (3, 10, 'AL', 20, 'BEA', timestamp '2026-03-01', 1),
            (7, 20, 'BILL', 10, 'AL', timestamp '2026-05-01', 2),
            (8, 40, null, 50, null, timestamp '2026-04-01', 8),
            (9, 40, null, 10, 'AL', timestamp '2026-04-01', 8),
            (10, 40, 'DEE', 10, 'AL', timestamp '2026-04-01', 8),
            (11, 20, 'BEA', 50, 'EVE', timestamp '2026-04-01', 2),
            (12, 60, null, 10, 'AL', timestamp '2026-04-01', 12),
            (13, 70, null, 10, 'AL', timestamp '2026-04-01', null),
            (14, 80, null, 10, 'AL', timestamp '2026-04-01', 14)
        ) as _(
            sale_id, buyer_id, buyer_name, seller_id, seller_name, recorded_at,
            first_sale_id
        )
        """
    )
    engine.execute(
        """
        create table first_sales as select * from (values
            (10, 1), (20, 2), (40, 8), (70, 13), (80, null)
        ) as _(user_id, first_sale_id)
        """
    )
    return sorted(row[0] for row in engine.execute(query).fetchall())


def query_of(found: dict[str, Any], **options: Any) -> str:
    query: str = made(**options).changed_keys(found, "sale_id", parents(), instant="recorded_at")
    return query


def test_rows_with_new_changes_and_rows_that_differ_as_of_then_are_recreated() -> None:
    found = grown()

    query = query_of(found)

    # Sales 4 and 5 have new changes. Of the users with new changes 20 was Bo when sale 3 and sale
    # 11 were recorded, 50 was there before sale 8, and 40 had no name at sale 10; what became of
    # 20 later leaves sale 2 as it is. User 10 has no new change. Commit 7 is for the next
    # increment: the histories have not read it. First sales are compared whole: that of buyer 60 is
    # gone, those of 70 and 80 come from and go to null.
    assert keys(query) == [3, 4, 5, 8, 10, 11, 12, 13, 14]
    assert keys(found["own_changes"]) == [4, 5]
    assert set(found["follows"]) == {"sale_history", "user_history", "first_sales"}
    assert found["reads"]["shop.user"] | {"table_uuid": None} == {
        "after": 4,
        "to": 6,
        "table_uuid": None,
        "table_since": 0,
    }


def test_of_now_a_mart_has_the_newest_version_of_each_parent() -> None:
    query: str = made().changed_keys(grown(), "sale_id", parents()[:2])

    # User 20 is Bill: sales 2 and 11 are not. User 40 has no name, and sale 10 has one.
    assert keys(query) == [2, 4, 5, 10, 11]


def with_nothing_new(*streams: str) -> dict[str, Any]:
    """An increment to which some histories bring nothing: the mart has read as far as they."""
    found = grown()
    for read in found["recorded"]["reads"]:
        if read["model_name"] == FACT and read["source_name"] in streams:
            read["read_to"] = 6
    return found


def test_a_parent_with_nothing_new_is_not_compared() -> None:
    """Fails when a change of a sale costs a comparison of all sales with all users."""
    asked: list[str] = []

    def run_query(query: str) -> SimpleNamespace:
        asked.append(query)
        return SimpleNamespace(rows=[[0]])

    query = query_of(
        with_nothing_new("shop.user"), run_query=run_query, truncates_when="records.__op = 't'"
    )

    # First sales are computed of sales.
    assert keys(query) == [4, 5, 12, 13, 14]
    assert "user_history" not in query
    assert asked == []


def different(found: dict[str, Any], rows: list[list[Any]], which: str = "run") -> tuple[str, str]:
    """The keys of an increment in which only users changed, and what was asked for them."""
    asked: list[str] = []

    def run_query(query: str) -> SimpleNamespace:
        asked.append(query)
        return SimpleNamespace(rows=rows)

    return query_of(found, which=which, run_query=run_query), "".join(asked)


def test_where_only_a_parent_changed_the_rows_that_differ_are_found_first() -> None:
    """Fails when a change of a user that affects no sale costs a write, or all users are read."""
    found = with_nothing_new("shop.sale")

    literals, asked = different(found, [[3], [8], [10], [11]])

    assert keys(asked) == [3, 8, 10, 11]
    assert "first_sales" not in asked
    assert literals == "3, 8, 10, 11"
    assert not found["is_unaffected"]


def test_where_no_row_differs_nothing_is_written() -> None:
    found = with_nothing_new("shop.sale")

    literals, _ = different(found, [])

    # Redshift creates a table of the model's rows all the same.
    assert literals == "null"
    assert found["is_unaffected"]


@pytest.mark.parametrize(
    "rows", [[[number] for number in range(1001)], [[date(2026, 1, 1)]]], ids=["many", "dates"]
)
def test_many_keys_and_those_without_a_literal_stay_a_query(rows: list[list[Any]]) -> None:
    found = with_nothing_new("shop.sale")

    query, _ = different(found, rows)

    assert keys(query) == [3, 8, 10, 11]
    assert not found["is_unaffected"]


def test_what_only_renders_a_mart_asks_for_no_keys() -> None:
    query, asked = different(with_nothing_new("shop.sale"), [[1]], which="compile")

    assert keys(query) == [3, 8, 10, 11]
    assert asked == ""


def test_a_history_that_was_rebuilt_has_the_mart_rebuilt() -> None:
    found = grown()
    found["recorded"]["days"] = [recorded_day(None, 4, USER, is_onwards=True)]

    query_of(found)

    assert found["is_full_refresh"]


def test_a_history_that_nobody_recorded_stops_the_increment() -> None:
    found = grown()
    found["recorded"]["reads"] = [
        one for one in found["recorded"]["reads"] if one["model_name"] != USER
    ]

    with pytest.raises(CompilerError, match=r"marts\.user_history has no read point"):
        query_of(found)


@pytest.mark.parametrize("count", [0, 2])
def test_a_truncate_of_a_parent_has_the_mart_rebuilt(count: int) -> None:
    """Envelopes may always bring one; it names no row."""
    asked: list[str] = []

    def run_query(query: str) -> SimpleNamespace:
        asked.append(query)
        return SimpleNamespace(rows=[[count]])

    found = grown()

    query_of(found, run_query=run_query, truncates_when="records.__op = 't'")

    (question,) = asked
    assert "records.__op = 't'" in question
    assert "_commit_id > 4 and _commit_id <= 6" in question
    assert found["is_full_refresh"] == (count > 0)
