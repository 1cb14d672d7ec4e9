"""The dashboard's queries give on DuckDB what Spark gives, on the tables of the demo.

Spark is asked by a session, and by the Thrift server as Superset and notebooks ask it, through
SQLAlchemy's ``hive://``.

Fails when a query means something else once translated, a scan loses rows, or docs/dashboards.md is
wrong of PyHive.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from sqlalchemy import Connection, create_engine, inspect, text

from dashboard import queries
from dashboard.lake import Look
from dashboard.queries import DIALECT, Query, Value
from sandbox.services.redshift.lake import Lake
from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun, brief

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Those of what the demo builds; the tables of captured sources it leaves out.
QUERIES = [
    query
    for page in ("overview", "rentals", "smoothies", "pipeline")
    for query in queries.of_page(page).values()
    if query.name not in {"overview/tickets", "overview/museum"}
]
each_query = pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)


@pytest.fixture(scope="module")
def failed_run(demo: DemoRun, spark: SparkSession) -> Iterator[None]:
    """A run of a node that failed: in the demo none does, and a figure would have no rows."""
    spark.sql(
        """
        insert into state.runs
        select
            'test_dashboard', 'build', node_id, node_name, node_type, 'error',
            run_seconds, row_count, 'It failed.', current_timestamp(), current_date()
        from state.runs
        order by node_id, started_at
        limit 1
        """
    )
    yield
    spark.sql("delete from state.runs where invocation_id = 'test_dashboard'")


@pytest.fixture(scope="module")
def look(stack: Stack, failed_run: None) -> Look:
    """All that the pages read of what the demo left."""
    lake = Lake(stack.home.path / "lake")
    names = {name for query in QUERIES for name in query.tables()}
    return Look({name: lake.table(*name.split(".")) for name in names})


@pytest.fixture(scope="module")
def values(look: Look) -> dict[str, Value]:
    """The parameters of all queries: those of the last hour."""
    newest = queries.of_page("rentals")["newest_window"].rows(look, {}).to_pylist()[0]
    start = (newest["newest_at"] - timedelta(hours=1)).astimezone(UTC)
    return {
        "is_by_hour": False,
        "since": start,
        "window_start_at": start,
        "window_end_at": start + timedelta(minutes=10),
    }


@pytest.fixture(scope="module")
def hive(stack: Stack, look: Look) -> Iterator[Connection]:
    """The Thrift server, as docs/dashboards.md connects a notebook to it."""
    brief(stack).run("sandbox", "up", "thrift")
    try:
        engine = create_engine(
            f"hive://dbt@127.0.0.1:{stack.home.ports['thrift']}/marts",
            connect_args={"auth": "NOSASL"},
        )
        with engine.connect() as connection:
            yield connection
    finally:
        stack.run("sandbox", "down", "thrift")


def alike(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows with decimals and numbers that may be compared."""
    return [
        {
            name: pytest.approx(float(value)) if is_number(value) else value
            for name, value in row.items()
        }
        for row in rows.to_pylist()
    ]


def is_number(value: Any) -> bool:
    return not isinstance(value, (bool, str, datetime, type(None)))


@each_query
def test_a_query_gives_what_spark_gives(
    query: Query, look: Look, values: dict[str, Value], spark: SparkSession
) -> None:
    by_spark = spark.sql(query.with_values(values).sql(DIALECT)).toArrow()

    assert alike(query.rows(look, values)) == alike(by_spark)
    assert by_spark.num_rows


@each_query
def test_a_query_gives_the_same_by_sqlalchemy(
    query: Query, look: Look, values: dict[str, Value], hive: Connection
) -> None:
    found = hive.execute(text(query.with_values(values).sql(DIALECT))).mappings()
    by_duckdb = query.rows(look, values)
    # PyHive gives dates as text, and times of no zone: the server's is UTC.
    by_hive = pa.Table.from_pylist([dict(row) for row in found]).cast(by_duckdb.schema)

    assert alike(by_hive) == alike(by_duckdb)
    assert by_hive.num_rows


def test_pyhive_takes_lists_of_spark_for_those_of_hive(hive: Connection) -> None:
    lake = inspect(hive)

    assert {"marts", "intermediate"} <= set(lake.get_schema_names())
    assert set(lake.get_table_names("marts")) == {"marts"}
    assert lake.get_columns("rpt_region_sales", "marts")
    with pytest.raises(TypeError):
        lake.get_columns("fct_rental_sales", "marts")
