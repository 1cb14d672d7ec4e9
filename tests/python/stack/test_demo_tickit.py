"""The demo of the ticket shop, from empty databases to the top events.

Fails when the demo of tickit loses a record or leaves out a mart, or its dashboard differs.
"""

from __future__ import annotations

import json
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dashboard import queries
from dashboard.lake import Look
from dashboard.queries import DIALECT
from sandbox.services import stack as services
from sandbox.services.mariadb import MARIADB
from sandbox.services.redshift.lake import Lake
from sandbox.services.stack import State
from sandbox.tour.scenarios import TICKETS
from tests.python.conftest import Stack, make_home, program_environment

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(MARIADB.lacks_platform() is not None, reason="no MariaDB for this machine"),
]


QUERIES = [*queries.of_page("tickets").values(), queries.of_page("overview")["tickets"]]


def both_ways(stack: Stack) -> dict[str, tuple[list[Any], list[Any]]]:
    """What Spark and the dashboard make of each query on the shop's tables, by its name."""
    lake = Lake(stack.home.path / "lake")
    names = {name for query in QUERIES for name in query.tables()}
    look = Look({name: lake.table(*name.split(".")) for name in names})
    repriced = queries.of_page("tickets")["repriced_listings"].rows(look, {})
    values = {"listing_id": repriced.column("listing_id")[0].as_py()}
    figures = {}
    for query in QUERIES:
        statement = query.with_values(values).sql(DIALECT)
        by_spark = stack.run("sandbox", "sql", "--format", "json", statement).stdout
        by_duckdb = query.rows(look, values).to_pylist()
        figures[query.name] = comparable(json.loads(by_spark)), comparable(by_duckdb)
    return figures


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with numbers that are nearly the same and times without a fraction."""
    return [
        {
            name: pytest.approx(float(value))
            if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
            else (value.isoformat() if isinstance(value, date) else str(value))[:19]
            for name, value in row.items()
        }
        for row in rows
    ]


def test_the_shop_is_shown_twice_and_each_record_is_found(tmp_path: Path) -> None:
    home = make_home(tmp_path / "sand box")
    target = {"DBT_TARGET_PATH": str(home.path / "target")}
    stack = Stack(home, program_environment(home) | target)
    demo = ("sandbox", "demo", "tickit", "--scale", "0.01")
    try:
        first = stack.run(*demo).stdout
        again = stack.run(*demo).stdout
        figures = both_ways(stack)
        running = [
            one.service.name for one in services.status(home) if one.state is not State.STOPPED
        ]
    finally:
        services.down(home)

    assert running == []
    for name, (by_spark, by_duckdb) in figures.items():
        assert by_duckdb == by_spark, name
        assert by_duckdb, name
    assert "13,527 rows in ems, ecomm, crm, 1,000 changes" in first
    for report in (first, again):
        counted = {
            stream: [int(text.replace(",", "")) for text in numbers.split()]
            for stream, numbers in re.findall(
                r"^  (tickit\.\w+|all)((?: +[\d,]+){5})$", report, re.MULTILINE
            )
        }
        assert counted.keys() == {*TICKETS.streams, "all"}
        for produced, bronze, *lost in counted.values():
            assert produced == bronze
            assert lost == [0, 0, 0]
        assert re.search(r"^  dbt: 3\d models, \d+ data tests: all good$", report, re.MULTILINE)
        for top in TICKETS.tops:
            after = report.partition(top.title)[2].splitlines()
            # A heading, its line, and the five rows.
            assert all(re.search(r"\d\.\d\d ", row) for row in after[3:8]), top.title
