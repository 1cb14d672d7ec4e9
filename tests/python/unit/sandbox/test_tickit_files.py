"""A person's own files of the ticket shop, as they are published: without a header, by `|`."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest

from sandbox.databases.columns import Column
from sandbox.databases.known import DATABASES
from sandbox.databases.tables import Row
from sandbox.events.column_fields import column_field
from sandbox.events.file_rows import read_table
from sandbox.events.matching import Matching
from tests.python.unit.sandbox.test_databases import schema

EVENT = "1|305|8|1851|Gotterdammerung|2008-01-25 14:30:00\n"
CATEGORY = "1|Sports|MLB|Major League Baseball\n"
VENUE = "5|Gillette Stadium|Foxborough|MA|68756\n6|Park|Harrison|NJ|0\n7|Hall|Napa|CA|\n"
USER = (
    "1|JSG99FHE|Rafael|Taylor|Kent|WA|Etiam.laoreet@sodales.edu|(664) 602-4412"
    "|True|True||False||True|||True|\n"
)
DATE = "1827|2008-01-01|WE|1|JAN|1|2008|True\n"
LISTING = "1|36861|7872|1850|10|182|1820|2008-01-24 06:43:29\n"
SALE = "1|1|36861|21191|7872|1875|4|728|109.2|2008-02-18 02:36:48\n"


def column(name: str, kind: str, size: str, rest: str) -> Column:
    """A column as its server describes it."""
    numbers = [int(number) for number in size.split(",") if number]
    return Column(
        name,
        kind,
        length=numbers[0] if kind in {"char", "varchar"} else None,
        precision=numbers[0] if kind == "decimal" else None,
        scale=numbers[1] if kind == "decimal" else None,
        fraction=sum(numbers) if kind == "datetime" else None,
        nullable="not null" not in rest and "primary key" not in rest,
        has_default=False,
    )


def rows_of(table: str, text: str) -> list[Row]:
    """What `sandbox replay --table` writes of a file."""
    name, _, of = table.partition(".")
    columns = [column_field(column(one, *about)) for one, about in schema(name)[of].items()]
    fields = {one.name: one for one in columns}
    key = DATABASES[name].table(of).key
    found = read_table(StringIO(text), "file", [*fields], None, "", key)
    matching = Matching(table, columns, {}, {})
    matching.check(found.columns)
    rows = []
    for row in found.rows:
        values = matching.values(row)
        rows.append({one: fields[one].converted(values) for one in values})
    return rows


@pytest.mark.parametrize(
    ("table", "text", "last"),
    [
        (
            "ems.event",
            EVENT,
            (1, 305, 8, 1851, "Gotterdammerung", datetime.fromisoformat("2008-01-25 14:30")),
        ),
        ("ems.category", CATEGORY, (1, "Sports", "MLB", "Major League Baseball")),
        ("ems.venue", VENUE, (7, "Hall", "Napa", "CA", None)),
        (
            "crm.user",
            USER,
            (
                *(1, "JSG99FHE", "Rafael", "Taylor", "Kent", "WA"),
                *("Etiam.laoreet@sodales.edu", "(664) 602-4412"),
                *(True, True, None, False, None, True, None, None, True, None),
            ),
        ),
        ("ecomm.date", DATE, (1827, date(2008, 1, 1), "WE", 1, "JAN", "1", 2008, True)),
        (
            "ecomm.listing",
            LISTING,
            (
                *(1, 36861, 7872, 1850, 10, Decimal(182), Decimal(1820)),
                datetime.fromisoformat("2008-01-24 06:43:29"),
            ),
        ),
        (
            "ecomm.sale",
            SALE,
            (
                *(1, 1, 36861, 21191, 7872, 1875, 4, Decimal(728), Decimal("109.2")),
                datetime.fromisoformat("2008-02-18 02:36:48"),
            ),
        ),
    ],
)
def test_a_file_is_taken_with_and_without_a_header(
    table: str, text: str, last: tuple[Any, ...]
) -> None:
    name, _, of = table.partition(".")
    columns = [*schema(name)[of]]

    rows = rows_of(table, text)

    assert len(rows) == text.count("\n")
    assert rows[-1] == dict(zip(columns, last, strict=True))
    assert rows_of(table, f"{'|'.join(columns)}\n{text}") == rows


def test_seats_that_nobody_counted_are_0_or_nothing() -> None:
    assert [row["venueseats"] for row in rows_of("ems.venue", VENUE)] == [68_756, 0, None]


@pytest.mark.parametrize("name", ["ems", "ecomm", "crm"])
def test_random_rows_have_the_columns_in_the_order_of_the_files(name: str) -> None:
    for table in DATABASES[name].tables:
        assert list(table.columns) == [*schema(name)[table.name]]
