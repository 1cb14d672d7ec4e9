"""The museum's page of the dashboard: its queries as views of both engines, and by DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dashboard import queries
from dashboard.lake import Look
from dashboard.queries import DIALECT, Query, Value
from sandbox.services.redshift.lake import Lake
from sandbox.settings import Home
from tests.python.parity.relations import Cell

# As a person chooses them on the page: an artist with several versions, as they are at last.
CHOSEN: dict[str, Value] = {"artist_id": 3, "instant": datetime(2100, 1, 1, tzinfo=UTC)}


def figures() -> dict[str, Query]:
    """The page's queries by the names of their views."""
    found = queries.of_page("museum").items()
    return {f"museum_page_{name}": query for name, query in found}


def write_views(folder: Path, config: str) -> None:
    """Write each query as a model.

    Args:
        folder: Of the models.
        config: What each begins with.
    """
    for name, query in figures().items():
        tables = (table.rpartition(".")[2] for table in query.tables())
        # The query names tables as a dashboard does: dbt has to be given them.
        needs = "".join(f"-- depends_on: {{{{ ref('{table}') }}}}\n" for table in tables)
        sql = query.with_values(CHOSEN).sql(DIALECT)
        (folder / f"{name}.sql").write_text(f"{config}{needs}{sql}\n")


def by_duckdb(home: Home) -> dict[str, list[tuple[Cell, ...]]]:
    """What the dashboard shows of a lake, by the names of the views, as Spark writes it."""
    lake = Lake(home.path / "lake")
    names = {name for query in figures().values() for name in query.tables()}
    look = Look({name: lake.table(*name.split(".")) for name in names})
    return {
        name: [tuple(map(_cell, row.values())) for row in query.rows(look, CHOSEN).to_pylist()]
        for name, query in figures().items()
    }


def _cell(value: Any) -> Cell:
    if isinstance(value, datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if "." in text else text
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)
