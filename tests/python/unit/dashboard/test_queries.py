"""The dashboard's SQL names what it may, and reads no more of a table than it needs.

Fails when a query names a view, its page has no exposure, or a filter would leave a row out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
import sqlglot
import yaml
from pyiceberg import expressions
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    NestedField,
    StringType,
    TimestamptzType,
)

from dashboard import queries
from dashboard.lake import Look
from dashboard.queries import Query, TablesMissing
from dashboard.scan import scans
from sandbox.settings import PROJECT

# Positional, which mypy does not know.
EqualTo: Any = expressions.EqualTo
GreaterThanOrEqual: Any = expressions.GreaterThanOrEqual
LessThan: Any = expressions.LessThan
LessThanOrEqual: Any = expressions.LessThanOrEqual

QUERIES = [query for page in queries.pages() for query in queries.of_page(page).values()]
MODELS = {file.stem: file for file in (PROJECT / "models").rglob("*.sql")}
# What dbt's hook at the end of each invocation writes: a source, and no model.
RUNS = "state.runs"
EXPOSURES = yaml.safe_load((PROJECT / "models/marts/_dashboard__exposures.yml").read_text())[
    "exposures"
]
SALES = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "country", StringType()),
    NestedField(3, "amount", DecimalType(18, 2)),
    NestedField(4, "paid_at", TimestamptzType()),
    NestedField(5, "day", DateType()),
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "country": ["A", "B", None],
        "amount": pa.array([1, 2, 3], pa.decimal128(18, 2)),
        "paid_at": pa.array(
            [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)], pa.timestamp("us", "UTC")
        ),
        "day": pa.array([date(2026, 1, day) for day in (1, 2, 3)]),
    }
)


@dataclass
class Table:
    """Stands for a table of Iceberg; it keeps what was asked of it."""

    asked: list[tuple[Any, set[str]]] = field(default_factory=list)
    metadata_location: str = "v1"

    def schema(self) -> Schema:
        return SALES

    def scan(self, row_filter: Any, selected_fields: tuple[str, ...]) -> Table:
        self.asked.append((row_filter, set(selected_fields)))
        return self

    def to_arrow(self) -> pa.Table:
        return ROWS.select(sorted(self.asked[-1][1]))


def asked(sql: str) -> tuple[Any, set[str]]:
    """The filter and the columns of the one scan of a query."""
    table = Table()
    look = Look({"marts.sales": cast(Any, table)})
    scans(sqlglot.parse_one(sql, read="spark"), look, "spark")
    (one,) = table.asked
    return one


def rows(sql: str, **values: Any) -> list[dict[str, Any]]:
    look = Look({"marts.sales": cast(Any, Table())})
    found: list[dict[str, Any]] = Query("p/q", "", "", sql).rows(look, values).to_pylist()
    return found


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_query_names_tables_that_dbt_builds(query: Query) -> None:
    for name in set(query.tables()) - {RUNS}:
        schema, _, model = name.partition(".")
        folder = MODELS[model].relative_to(PROJECT / "models").parts[0]
        assert folder == schema
        # Of intermediate models histories alone are tables: no reader of Iceberg has views.
        assert schema == "marts" or model.endswith("_history"), name


@pytest.mark.parametrize("page", list(queries.pages()))
def test_an_exposure_says_what_a_page_reads(page: str) -> None:
    (exposure,) = [of for of in EXPOSURES if of["name"] == f"dashboard_{page}"]
    read = {name for query in queries.of_page(page).values() for name in query.tables()}

    assert sorted(exposure["depends_on"]) == sorted(
        "source('dbt', 'runs')" if name == RUNS else f"ref('{name.partition('.')[2]}')"
        for name in read
    )
    # The first page has the address of the dashboard.
    place = "" if page == "overview" else page
    assert exposure["url"] == f"{{{{ var('dashboard_url') }}}}/{place}"


def test_each_exposure_of_the_dashboard_is_a_page() -> None:
    assert {of["name"].removeprefix("dashboard_") for of in EXPOSURES} == {*queries.pages()}


@pytest.mark.parametrize(
    ("condition", "filters"),
    [
        ("id = 3", [EqualTo("id", 3)]),
        ("country = 'A'", [EqualTo("country", "A")]),
        (
            "paid_at >= cast('2026-01-02' as timestamp) and paid_at < '2026-01-03 01:00'",
            [
                GreaterThanOrEqual("paid_at", "2026-01-02T00:00:00+00:00"),
                LessThan("paid_at", "2026-01-03T01:00:00+00:00"),
            ],
        ),
        ("day <= cast('2026-01-02' as date)", [LessThanOrEqual("day", "2026-01-02")]),
        # A date is before a moment of its day: cut off, the comparison would be another one.
        ("day < '2026-01-02 12:00'", []),
        ("amount = 1.5", []),
        ("id = 1 or country = 'B'", []),
        ("not id = 1", []),
        ("coalesce(country, 'A') = 'A'", []),
        ("id = 1 and country is null", [EqualTo("id", 1)]),
    ],
)
def test_a_scan_asks_for_what_the_query_compares(condition: str, filters: list[Any]) -> None:
    found, columns = asked(f"select sum(amount) from marts.sales where {condition}")

    wanted = expressions.And(*filters) if len(filters) > 1 else (filters or [None])[0]
    assert str(found) == str(wanted) if wanted else str(found) == "AlwaysTrue()"
    assert "amount" in columns
    assert columns < set(SALES.column_names)


def test_a_table_that_is_read_twice_is_filtered_by_neither() -> None:
    found, columns = asked(
        "select a.id from marts.sales as a inner join marts.sales as b on a.id = b.id"
        " where a.country = 'A' and b.country = 'B'"
    )

    assert str(found) == "AlwaysTrue()"
    assert columns == {"id", "country"}


def test_what_a_query_only_counts_needs_one_column() -> None:
    assert asked("select count(*) from marts.sales")[1] == {"id"}


def test_a_parameter_is_a_value_whatever_it_says() -> None:
    sql = "select id from marts.sales where country = :country or paid_at = :at"
    at: Mapping[str, Any] = {"at": datetime(2026, 1, 2, tzinfo=UTC)}

    assert rows(sql, country="A' or '1' = '1", **at) == [{"id": 2}]
    with pytest.raises(KeyError, match="country"):
        rows(sql, **at)


def test_a_decimal_is_drawn_as_a_number() -> None:
    assert rows("select sum(amount) as amount from marts.sales") == [{"amount": 6.0}]


def test_a_table_that_is_not_there_is_named() -> None:
    with pytest.raises(TablesMissing, match=r"marts\.others"):
        rows("select id from marts.others")


def test_a_query_that_somebody_edits_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "FOLDER", tmp_path)
    file = tmp_path / "own" / "one.sql"
    file.parent.mkdir()
    file.write_text("-- One\n-- and more,\n-- of it\nselect 1 as id\n")

    before = queries.of_page("own")["one"]
    file.write_text("select 2 as id\n")

    assert (before.title, before.about) == ("One", "and more, of it")
    assert queries.of_page("own")["one"].title == "One"
    assert queries.of_page("own")["one"].sql == "select 2 as id\n"
    assert list(queries.pages()) == ["own"]
