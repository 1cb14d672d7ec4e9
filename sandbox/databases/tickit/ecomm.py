"""What happens in the shop: tickets are listed and sold, prices change, tickets come back.

Users and events are in other databases: their numbers are those that the rows here have had,
whether or not they are still there. A listing with sales changes its price alone, and now and then
goes without them: sold tickets are sold, and no foreign key holds their listing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from sandbox.databases.draft import Draft, Move, Weighted, chosen, whole
from sandbox.databases.moves import Habits, moves_of
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.tickit import listings
from sandbox.databases.tickit.shop import BEGIN, LAST_DATE_ID, LAST_OLD, LISTINGS, later_row

_MOST_SOLD = 4
_EARLIER = timedelta(days=30)
_CENT = Decimal("0.01")
# How often a listing is drawn until one has no sales, or tickets left.
_TRIES = 5


def _new_day(draft: Draft) -> Row:
    return listings.day(draft.contents.next_number("date", "dateid", LAST_DATE_ID))


def _edited_day(_draft: Draft, row: Row) -> Row:
    return {"holiday": not row["holiday"]}


def _moved_day(_draft: Draft, _row: Row) -> None:
    """The number of a day is its date: it has no other."""


def _free_day(draft: Draft) -> Row | None:
    """A day behind those on which something is listed, sold or given."""
    return later_row(draft, "date", "dateid", LAST_DATE_ID)


def _new_listing(draft: Draft) -> Row | None:
    """For the event of another listing, whose price is about the same."""
    other = draft.draw("listing")
    if other is None:
        return None
    number = draft.contents.next_number("listing", "listid")
    return listings.listing(
        draft.random,
        number,
        _user(draft),
        other["eventid"],
        _listed_before(draft, other),
        _cents(other),
    )


def _edited_listing(draft: Draft, row: Row) -> Row:
    random = draft.random
    other_price = listings.prices(random, row["numtickets"], _cents(row))
    if _sales_of(draft, row):
        return other_price
    tickets = whole(random, 1, 30)
    other = draft.draw("listing") or row
    at = _listed_before(draft, other)
    edits: tuple[tuple[float, Row], ...] = (
        (3, other_price),
        (2, {"numtickets": tickets, "totalprice": row["priceperticket"] * tickets}),
        (1, {"sellerid": _user(draft)}),
        (2, {"eventid": other["eventid"], **listings.listed_at(at)}),
    )
    return chosen(random, edits)


def _moved_listing(draft: Draft, _row: Row) -> Row:
    return {"listid": draft.contents.next_number("listing", "listid")}


def _free_listing(draft: Draft) -> Row | None:
    for _ in range(_TRIES):
        row = draft.draw("listing")
        if row is not None and not _sales_of(draft, row):
            return row
    return None


def _new_sale(draft: Draft) -> Row | None:
    for _ in range(_TRIES):
        listing = draft.draw("listing")
        if listing is not None and _left(draft, listing) > 0:
            return _sale_of(draft, listing)
    return None


def _sale_of(draft: Draft, listing: Row) -> Row:
    return listings.sale(
        draft.random,
        draft.contents.next_number("sale", "saleid"),
        listing,
        _user(draft, listing["sellerid"]),
        _left(draft, listing),
        _end(draft, listing),
    )


def _edited_sale(draft: Draft, row: Row) -> Row:
    """Some tickets of it are given back, it was somebody else's, or on another day."""
    random = draft.random
    kept = whole(random, 1, row["qtysold"])
    price = (row["pricepaid"] / row["qtysold"]).quantize(_CENT)
    edits: list[tuple[float, Row]] = [
        (2, {"qtysold": kept, **listings.paid(kept * price)}),
        (1, {"buyerid": _user(draft, row["sellerid"])}),
    ]
    listing = draft.contents.row("listing", row["listid"])
    if listing is not None:
        end = _end(draft, listing)
        at = listings.sold_between(random, listing["listtime"], end)
        edits.append((1, at))
    return chosen(random, edits)


def _moved_sale(draft: Draft, _row: Row) -> Row:
    return {"saleid": draft.contents.next_number("sale", "saleid")}


def _sale_fits(draft: Draft, row: Row) -> bool:
    """Whether its listing is there as it was, with so many tickets left."""
    listing = draft.contents.row("listing", row["listid"])
    return (
        listing is not None
        and listing["sellerid"] == row["sellerid"]
        and listing["eventid"] == row["eventid"]
        and listing["listtime"] < row["saletime"]
        and _left(draft, listing) >= row["qtysold"]
    )


def _sell_out(draft: Draft) -> None:
    """Several buyers take tickets of one listing, until it has none."""
    listing = draft.draw("listing")
    for _ in range(whole(draft.random, 2, _MOST_SOLD)):
        if listing is None or _left(draft, listing) < 1:
            return
        draft.insert("sale", _sale_of(draft, listing))


def _tidy_up(draft: Draft) -> None:
    """A listing goes that has sold tickets, best all of them; its sales stay."""
    sold = [
        row
        for row in (draft.draw("listing") for _ in range(_TRIES))
        if row is not None and _sales_of(draft, row)
    ]
    if sold:
        draft.delete("listing", min(sold, key=lambda row: _left(draft, row)))


def _sales_of(draft: Draft, listing: Row) -> list[Row]:
    return draft.contents.holding("sale", "listid", listing["listid"])


def _left(draft: Draft, listing: Row) -> int:
    """How many tickets of a listing are not sold."""
    sold = sum(sale["qtysold"] for sale in _sales_of(draft, listing))
    return int(listing["numtickets"] - sold)


def _end(draft: Draft, listing: Row) -> datetime:
    """A time up to which a listing's tickets can be sold: its event is not over."""
    known = [sale["saletime"] for sale in _sales_of(draft, listing)]
    end: datetime = max([listing["listtime"] + listings.ON_SALE, *known])
    return end


def _listed_before(draft: Draft, other: Row) -> datetime:
    """A time before another listing of the same event, which is before the event."""
    last = other["listtime"]
    return listings.listed(draft.random, max(BEGIN, last - _EARLIER), last)


def _user(draft: Draft, other_than: int = 0) -> int:
    """Any user up to the largest number that is seen here, but not the other one."""
    contents = draft.contents
    most = max(
        contents.largest("listing", "sellerid", LAST_OLD),
        contents.largest("sale", "buyerid", LAST_OLD),
        2,
    )
    found = whole(draft.random, 1, most)
    return found % most + 1 if found == other_than else found


def _cents(listing: Row) -> int:
    return int(listing["priceperticket"] * 100)


MOVES: Weighted[Move] = (
    *moves_of(Habits("sale", _new_sale, _edited_sale, _moved_sale, fits=_sale_fits), 54),
    *moves_of(Habits("listing", _new_listing, _edited_listing, _moved_listing, _free_listing), 34),
    *moves_of(Habits("date", _new_day, _edited_day, _moved_day, _free_day), 4),
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
    moves=MOVES,
    help="TICKIT's listings of tickets, their sales and days, in MariaDB.",
)  # fmt: skip
