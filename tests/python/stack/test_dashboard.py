"""The dashboard's queries give on DuckDB what Spark gives, on the tables of the demo.

Fails when a query means something else once it is translated, or a scan leaves rows out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from dashboard import queries
from dashboard.lake import Look
from dashboard.queries import DIALECT, Query
from sandbox.services.redshift.lake import Lake
from tests.python.conftest import Stack
from tests.python.stack.conftest import DemoRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Those of what the demo builds; the tables of captured sources it leaves out.
QUERIES = [
    query
    for page in ("overview", "rentals", "smoothies", "pipeline")
    for query in queries.of_page(page).values()
    if query.name not in {"overview/tickets", "overview/museum"}
]


@pytest.fixture(scope="module")
def look(stack: Stack, demo: DemoRun) -> Look:
    """All that the pages read of what the demo left."""
    lake = Lake(stack.home.path / "lake")
    names = {name for query in QUERIES for name in query.tables()}
    return Look({name: lake.table(*name.split(".")) for name in names})


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


@pytest.mark.parametrize(
    "query",
    QUERIES,
    ids=lambda query: query.name,
)
def test_a_query_gives_what_spark_gives(
    query: Query, look: Look, spark: SparkSession
) -> None:
    newest = queries.of_page("rentals")["newest_window"].rows(look, {}).to_pylist()[0]
    start = newest["newest_at"] - timedelta(hours=1)
    values = {
        "is_by_hour": False,
        "since": start.astimezone(UTC),
        "window_start_at": start.astimezone(UTC),
        "window_end_at": start.astimezone(UTC) + timedelta(minutes=10),
    }
    by_spark = spark.sql(query.with_values(values).sql(DIALECT)).toArrow()

    assert alike(query.rows(look, values)) == alike(by_spark)
    assert by_spark.num_rows
