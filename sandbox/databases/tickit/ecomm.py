"""What happens in the shop: tickets are listed and sold, prices change, tickets come back.

Users and events are in other databases: their numbers are those that the rows here have had,
whether or not they are still there. A listing with sales changes its price alone, and now and then
goes without them: sold tickets are sold, and no foreign key holds their listing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from sandbox.databases.operations import RowRules, operations_on
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.tickit import listings
from sandbox.databases.tickit.shop import BEGIN, LAST_DATE_ID, LAST_OLD, LISTINGS, later_row
from sandbox.databases.transactions import Operation, Txn, Weighted, chosen, whole

_MOST_SOLD = 4
_EARLIER = timedelta(days=30)
_CENT = Decimal("0.01")
# How often a listing is drawn until one has no sales, or tickets left.
_TRIES = 5


def _new_day(txn: Txn) -> Row:
    return listings.day(txn.state.next_number("date", "dateid", LAST_DATE_ID))


def _edited_day(_txn: Txn, row: Row) -> Row:
    return {"holiday": not row["holiday"]}


def _moved_day(_txn: Txn, _row: Row) -> None:
    """The number of a day is its date: it has no other."""


def _free_day(txn: Txn) -> Row | None:
    """A day behind those on which something is listed, sold or given."""
    return later_row(txn, "date", "dateid", LAST_DATE_ID)


def _new_listing(txn: Txn) -> Row | None:
    """For the event of another listing, whose price is about the same."""
    other = txn.draw("listing")
    if other is None:
        return None
    number = txn.state.next_number("listing", "listid")
    return listings.listing(
        txn.random,
        number,
        _user(txn),
        other["eventid"],
        _listed_before(txn, other),
        _cents(other),
    )


def _edited_listing(txn: Txn, row: Row) -> Row:
    random = txn.random
    other_price = listings.prices(random, row["numtickets"], _cents(row))
    if _sales_of(txn, row):
        return other_price
    tickets = whole(random, 1, 30)
    other = txn.draw("listing") or row
    at = _listed_before(txn, other)
    edits: tuple[tuple[float, Row], ...] = (
        (3, other_price),
        (2, {"numtickets": tickets, "totalprice": row["priceperticket"] * tickets}),
        (1, {"sellerid": _user(txn)}),
        (2, {"eventid": other["eventid"], **listings.listed_at(at)}),
    )
    return chosen(random, edits)


def _moved_listing(txn: Txn, _row: Row) -> Row:
    return {"listid": txn.state.next_number("listing", "listid")}


def _free_listing(txn: Txn) -> Row | None:
    for _ in range(_TRIES):
        row = txn.draw("listing")
        if row is not None and not _sales_of(txn, row):
            return row
    return None


def _new_sale(txn: Txn) -> Row | None:
    for _ in range(_TRIES):
        listing = txn.draw("listing")
        if listing is not None and _left(txn, listing) > 0:
            return _sale_of(txn, listing)
    return None


def _sale_of(txn: Txn, listing: Row) -> Row:
    return listings.sale(
        txn.random,
        txn.state.next_number("sale", "saleid"),
        listing,
        _user(txn, listing["sellerid"]),
        _left(txn, listing),
        _end(txn, listing),
    )


def _edited_sale(txn: Txn, row: Row) -> Row:
    """Some tickets of it are given back, it was somebody else's, or on another day."""
    random = txn.random
    kept = whole(random, 1, row["qtysold"])
    price = (row["pricepaid"] / row["qtysold"]).quantize(_CENT)
    edits: list[tuple[float, Row]] = [
        (2, {"qtysold": kept, **listings.paid(kept * price)}),
        (1, {"buyerid": _user(txn, row["sellerid"])}),
    ]
    listing = txn.state.row("listing", row["listid"])
    if listing is not None:
        end = _end(txn, listing)
        at = listings.sold_between(random, listing["listtime"], end)
        edits.append((1, at))
    return chosen(random, edits)


def _moved_sale(txn: Txn, _row: Row) -> Row:
    return {"saleid": txn.state.next_number("sale", "saleid")}


def _sale_fits(txn: Txn, row: Row) -> bool:
    """Whether its listing is there as it was, with so many tickets left."""
    listing = txn.state.row("listing", row["listid"])
    return (
        listing is not None
        and listing["sellerid"] == row["sellerid"]
        and listing["eventid"] == row["eventid"]
        and listing["listtime"] < row["saletime"]
        and _left(txn, listing) >= row["qtysold"]
    )


def _sell_out(txn: Txn) -> None:
    """Several buyers take tickets of one listing, until it has none."""
    listing = txn.draw("listing")
    for _ in range(whole(txn.random, 2, _MOST_SOLD)):
        if listing is None or _left(txn, listing) < 1:
            return
        txn.insert("sale", _sale_of(txn, listing))


def _tidy_up(txn: Txn) -> None:
    """A listing goes that has sold tickets, best all of them; its sales stay."""
    sold = [
        row
        for row in (txn.draw("listing") for _ in range(_TRIES))
        if row is not None and _sales_of(txn, row)
    ]
    if sold:
        txn.delete("listing", min(sold, key=lambda row: _left(txn, row)))


def _sales_of(txn: Txn, listing: Row) -> list[Row]:
    return txn.state.holding("sale", "listid", listing["listid"])


def _left(txn: Txn, listing: Row) -> int:
    """How many tickets of a listing are not sold."""
    sold = sum(sale["qtysold"] for sale in _sales_of(txn, listing))
    return int(listing["numtickets"] - sold)


def _end(txn: Txn, listing: Row) -> datetime:
    """A time up to which a listing's tickets can be sold: its event is not over."""
    known = [sale["saletime"] for sale in _sales_of(txn, listing)]
    end: datetime = max([listing["listtime"] + listings.ON_SALE, *known])
    return end


def _listed_before(txn: Txn, other: Row) -> datetime:
    """A time before another listing of the same event, which is before the event."""
    last = other["listtime"]
    return listings.listed(txn.random, max(BEGIN, last - _EARLIER), last)


def _user(txn: Txn, other_than: int = 0) -> int:
    """Any user up to the largest number that is seen here, but not the other one."""
    state = txn.state
    most = max(
        state.largest("listing", "sellerid", LAST_OLD),
        state.largest("sale", "buyerid", LAST_OLD),
        2,
    )
    found = whole(txn.random, 1, most)
    return found % most + 1 if found == other_than else found


def _cents(listing: Row) -> int:
    return int(listing["priceperticket"] * 100)


OPERATIONS: Weighted[Operation] = (
    *operations_on(RowRules("sale", _new_sale, _edited_sale, _moved_sale, fits=_sale_fits), 54),
    *operations_on(
        RowRules("listing", _new_listing, _edited_listing, _moved_listing, _free_listing), 34
    ),
    *operations_on(RowRules("date", _new_day, _edited_day, _moved_day, _free_day), 4),
    (4, _sell_out),
    (1, _tidy_up),
)

ECOMM = Database(
    name="ecomm",
    engine="mariadb",
    connector="tickit-ecomm",
    command="tickit",
    tables=(
        Table(
            "listing",
            ("listid",),
            (
                "listid", "sellerid", "eventid", "dateid", "numtickets",
                "priceperticket", "totalprice", "listtime",
            ),
        ),
        Table(
            "sale",
            ("saleid",),
            (
                "saleid", "listid", "sellerid", "buyerid", "eventid", "dateid",
                "qtysold", "pricepaid", "commission", "saletime",
            ),
        ),
        Table(
            "date",
            ("dateid",),
            (
                "dateid", "caldate", "day", "week", "month", "qtr", "year", "holiday",
            ),
        ),
    ),
    size=LISTINGS,
    rows=listings.rows,
    operations=OPERATIONS,
    help="TICKIT's listings of tickets, their sales and days, in MariaDB.",
)  # fmt: skip
