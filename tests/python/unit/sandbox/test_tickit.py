"""The ticket shop: its rows are true to one another, in three databases that see none of it."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any

import pytest
from typer.testing import CliRunner

from sandbox import cli
from sandbox.databases.known import DATABASES, TICKIT
from sandbox.databases.run import Part, run_together
from sandbox.databases.state import DatabaseState, Kind
from sandbox.databases.tables import Row
from sandbox.databases.tickit import listings, people, shop
from sandbox.databases.transactions import transactions
from sandbox.events import produce_tickit
from spark_ingest.errors import ConfigurationError
from tests.python.unit.sandbox.test_databases import Server

# About a fiftieth of the whole shop.
SIZE = 3_850
SIZES = pytest.mark.parametrize("size", [1, 40, SIZE])


@cache
def first(size: int = SIZE, seed: int = 1) -> dict[str, list[Row]]:
    """The rows that the shop begins with, by table."""
    found: dict[str, list[Row]] = {}
    for database in TICKIT:
        for table, row in database.rows(seed, size):
            found.setdefault(table, []).append(row)
    return found


def changed(
    seed: int, size: int, changes: int
) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """What the shop has after random changes, and all that it ever had, by table.

    Of a row that is gone the second says what it last was.
    """
    now: dict[str, list[Row]] = {}
    ever: dict[str, list[Row]] = {}
    for database in TICKIT:
        state = DatabaseState(database, database.rows(seed, size))
        state_of = {
            table.name: {table.key_of(row): row for row in state.rows(table.name)}
            for table in database.tables
        }
        for transaction in transactions(state, database.operations, seed, changes):
            if transaction.is_rolled_back:
                continue
            for change in transaction.changes:
                if change.kind is not Kind.DELETE:
                    rows = state_of[change.table]
                    before = {} if change.kind is Kind.INSERT else rows[change.key]
                    after = {**before, **change.values}
                    rows[database.table(change.table).key_of(after)] = after
        for name, rows in state_of.items():
            now[name] = list(state.rows(name))
            ever[name] = list(rows.values())
    return now, ever


def by(rows: list[Row], column: str) -> dict[Any, Row]:
    return {row[column]: row for row in rows}


def assert_whole(rows: dict[str, list[Row]], ever: dict[str, list[Row]]) -> None:
    """Nothing refers to what never was there, and what is stored twice is equal."""
    categories, venues = by(rows["category"], "catid"), by(rows["venue"], "venueid")
    events, users = by(ever["event"], "eventid"), by(ever["user"], "userid")
    days, offers = by(rows["date"], "dateid"), by(ever["listing"], "listid")
    assert len({row["username"] for row in rows["user"]}) == len(rows["user"])
    for event in rows["event"]:
        assert event["catid"] in categories
        assert event["venueid"] in venues
        assert days[event["dateid"]]["caldate"] == event["starttime"].date()
        assert event["starttime"].year == 2008
    for offer in rows["listing"]:
        starts = events[offer["eventid"]]["starttime"]
        assert offer["sellerid"] in users
        assert offer["listtime"] + listings.ON_SALE <= starts
        assert days[offer["dateid"]]["caldate"] == offer["listtime"].date()
        assert offer["totalprice"] == offer["numtickets"] * offer["priceperticket"]
    sold: Counter[int] = Counter()
    for sale in rows["sale"]:
        offer = offers[sale["listid"]]
        sold[sale["listid"]] += sale["qtysold"]
        assert sale["sellerid"] == offer["sellerid"]
        assert sale["eventid"] == offer["eventid"]
        assert sale["buyerid"] in users
        assert sale["buyerid"] != sale["sellerid"]
        starts = events[sale["eventid"]]["starttime"]
        assert offer["listtime"] < sale["saletime"] < starts
        assert days[sale["dateid"]]["caldate"] == sale["saletime"].date()
        share = sale["pricepaid"] * 15 / 100
        assert sale["commission"] == share.quantize(Decimal("0.01"), ROUND_HALF_UP)
    for listid, count in sold.items():
        assert count <= offers[listid]["numtickets"]


@SIZES
def test_first_rows_of_three_databases_agree(size: int) -> None:
    rows = first(size)
    assert_whole(rows, ever=rows)
    offers = by(rows["listing"], "listid")
    for sale in rows["sale"]:
        price = offers[sale["listid"]]["priceperticket"]
        assert sale["pricepaid"] == sale["qtysold"] * price


def test_a_scale_is_of_users_listings_and_sales_alone() -> None:
    assert {table: len(rows) for table, rows in first().items()} == {
        "category": 11,
        "venue": 205,
        "event": 8_798,
        "date": 365,
        "listing": SIZE,
        "sale": 172_456 * SIZE // 192_497,
        "user": 49_990 * SIZE // 192_497,
    }
    assert first(40)["event"] == first()["event"]
    assert len(first(1)["user"]) >= 2


def test_few_have_most_and_many_have_none() -> None:
    rows = first()

    def tenth(column: str, table: str, of: int) -> float:
        counts = sorted(Counter(row[column] for row in rows[table]).values())
        return sum(counts[-(of // 10) :]) / len(rows[table])

    users = len(rows["user"])
    assert tenth("sellerid", "listing", users) > 0.4
    assert tenth("buyerid", "sale", users) > 0.5
    assert tenth("eventid", "listing", 8_798) > 0.3
    assert len({row["buyerid"] for row in rows["sale"]}) < 0.6 * users
    assert len({row["sellerid"] for row in rows["listing"]}) < 0.8 * users


def test_what_may_be_unknown_is_null_here_and_there() -> None:
    rows = first()
    nullable = ("city", "state", "email", "phone", *people.LIKES)
    for column in nullable:
        known = [row[column] is not None for row in rows["user"]]
        assert 0 < sum(known) < len(known)
    assert {None, 0} < {row["venueseats"] for row in rows["venue"]}


def test_a_username_is_of_one_number() -> None:
    numbers = [*range(1, 50_000), *range(1_000_001, 1_050_000), 2**31 - 1]
    names = {people.username(number) for number in numbers}
    assert len(names) == len(numbers)
    assert all(
        len(name) == 8 and (name[:3] + name[5:]).isalpha() and name[3:5].isdigit() for name in names
    )


def test_days_are_written_as_tickit_writes_them() -> None:
    assert listings.day(1827) == {
        "dateid": 1827,
        "caldate": date(2008, 1, 1),
        "day": "TU",
        "week": 1,
        "month": "JAN",
        "qtr": "1",
        "year": 2008,
        "holiday": True,
    }
    assert [row["dateid"] for row in first()["date"]] == list(range(1827, 2192))
    assert shop.dateid_of(shop.LAST_MOMENT) == 2191


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 60, SIZE])
def test_what_is_referred_to_after_changes_is_or_once_was_there(seed: int, size: int) -> None:
    assert_whole(*changed(seed, size, 3_000))


def test_listings_events_and_users_go_that_have_sales() -> None:
    now, _ = changed(1, SIZE, 3_000)

    for table, key, columns in (
        ("listing", "listid", ("listid",)),
        ("event", "eventid", ("eventid",)),
        ("user", "userid", ("sellerid", "buyerid")),
    ):
        there = by(now[table], key)
        sold = {sale[column] for sale in now["sale"] for column in columns}
        gone = sold - there.keys()
        assert 0 < len(gone) < len(sold) / 20, table


def test_what_other_databases_refer_to_goes_seldom_and_keeps_its_key() -> None:
    for name, table, most, share in (
        ("ems", "event", shop.LAST_OLD, 0.04),
        ("crm", "user", shop.LAST_OLD, 0.04),
        ("ecomm", "date", shop.LAST_DATE_ID, 0),
    ):
        database = DATABASES[name]
        (key,) = database.table(table).key
        state = DatabaseState(database, database.rows(1, 60))
        seen, old = Counter[Kind](), Counter[Kind]()
        for transaction in transactions(state, database.operations, 1, 2_000):
            for change in transaction.changes:
                if change.table == table:
                    seen[change.kind] += 1
                    if change.key[0] <= most:
                        old[change.kind] += 1
                        assert key not in change.values or change.kind is Kind.INSERT
        assert min(seen.values()) > 5
        assert old[Kind.DELETE] <= share * 2_000
        assert old[Kind.INSERT] <= old[Kind.DELETE]
        assert bool(old[Kind.DELETE]) == bool(share)


def test_a_listing_with_sales_changes_its_price_alone() -> None:
    database = DATABASES["ecomm"]
    state = DatabaseState(database, database.rows(1, 60))
    changes = 0
    for transaction in transactions(state, database.operations, 1, 3_000):
        sold = {row["listid"] for row in state.rows("sale")}
        for change in transaction.changes:
            if change.table == "listing" and change.kind is Kind.UPDATE:
                of_sold = len(transaction.changes) == 1 and change.key[0] in sold
                changes += of_sold
                assert not of_sold or set(change.values) == {"priceperticket", "totalprice"}
    assert changes > 50


def test_an_event_is_put_off_and_never_begins_earlier() -> None:
    database = DATABASES["ems"]
    state = DatabaseState(database, database.rows(1, 60))
    before = {row["eventid"]: row["starttime"] for row in state.rows("event")}
    list(transactions(state, database.operations, 1, 3_000))
    later = [
        row["starttime"] - before[row["eventid"]]
        for row in state.rows("event")
        if row["eventid"] in before
    ]
    assert min(later) == timedelta(0)
    assert sum(moved > timedelta(0) for moved in later) > 50


def test_rows_are_found_by_a_value_as_they_change_and_change_back() -> None:
    database = DATABASES["ecomm"]
    state = DatabaseState(database, database.rows(1, 60))

    def searched(listid: int) -> list[int]:
        rows = state.rows("sale")
        return sorted(row["saleid"] for row in rows if row["listid"] == listid)

    for transaction in transactions(state, database.operations, 3, 1_000):
        for change in transaction.changes:
            listid = {"listid": change.key[0], **change.values}["listid"]
            found = state.holding("sale", "listid", listid)
            assert sorted(row["saleid"] for row in found) == searched(listid)


def test_changes_are_split_and_end_together() -> None:
    assert produce_tickit.split(300, ["ems", "ecomm", "crm"]) == {
        "ems": 24,
        "ecomm": 240,
        "crm": 36,
    }
    assert produce_tickit.split(1, ["ems", "ecomm", "crm"])["ecomm"] == 1
    assert sum(produce_tickit.split(7, ["ems", "crm"]).values()) == 7

    server, parts = Server(), []
    for name, changes in produce_tickit.split(200, ["ems", "ecomm", "crm"]).items():
        database = DATABASES[name]
        state = DatabaseState(database, database.rows(1, 60))
        drawn = transactions(state, database.operations, 1, changes)
        parts.append(Part(database, server, drawn, changes))
    counted: list[int] = []
    done = run_together(parts, on_progress=counted.append)
    assert [one.changes.total() for one in done] == [part.changes for part in parts]
    assert counted == sorted(counted)
    assert counted[-1] == 200


def test_a_command_of_one_database_names_the_one_of_all() -> None:
    done = CliRunner().invoke(cli.app, ["produce", "tickit-ecomm", "--rows", "5"])
    assert isinstance(done.exception, ConfigurationError)
    assert "`sandbox produce tickit`" in str(done.exception)


def test_a_platform_without_mariadb_has_the_other_databases(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    databases, left_out = produce_tickit._present()
    assert [database.name for database in databases] == ["ems", "crm"]
    assert list(left_out) == ["ecomm"]
    assert "ecomm is left out: MariaDB comes for Linux" in capsys.readouterr().err
