"""What happens in a shop of tickets: tickets are listed and sold, sales are cancelled."""

from __future__ import annotations

from sandbox.databases.draft import Draft, Move, Weighted, chosen, whole
from sandbox.databases.moves import Habits, moves_of
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.tickit import rows

_MOST_SOLD = 4


def _new_day(draft: Draft) -> Row:
    return rows.day(draft.contents.next_number("date", "dateid"))


def _edited_day(_draft: Draft, row: Row) -> Row:
    return {"holiday": not row["holiday"]}


def _moved_day(_draft: Draft, _row: Row) -> None:
    """The number of a day is its date: it has no other."""


def _new_listing(draft: Draft) -> Row:
    number = draft.contents.next_number("listing", "listid")
    return rows.listing(draft.random, number)


def _edited_listing(draft: Draft, row: Row) -> Row:
    random = draft.random
    tickets = whole(random, 1, 30)
    price = row["priceperticket"]
    edits: tuple[tuple[float, Row], ...] = (
        (2, {"numtickets": tickets, "totalprice": price * tickets}),
        (2, rows.prices(random, row["numtickets"])),
        (1, {"sellerid": whole(random, 1, rows.USERS)}),
    )
    return chosen(random, edits)


def _moved_listing(draft: Draft, _row: Row) -> Row:
    return {"listid": draft.contents.next_number("listing", "listid")}


def _new_sale(draft: Draft) -> Row | None:
    listing = draft.draw("listing")
    if listing is None:
        return None
    number = draft.contents.next_number("sale", "saleid")
    return rows.sale(draft.random, number, listing)


def _edited_sale(draft: Draft, row: Row) -> Row:
    """Some tickets of it are given back, or it was somebody else's."""
    random = draft.random
    left = whole(random, 1, row["qtysold"])
    price = row["pricepaid"] / row["qtysold"]
    edits: tuple[tuple[float, Row], ...] = (
        (2, {"qtysold": left, **rows.paid(left * price)}),
        (1, {"buyerid": whole(random, 1, rows.USERS)}),
    )
    return chosen(random, edits)


def _moved_sale(draft: Draft, _row: Row) -> Row:
    return {"saleid": draft.contents.next_number("sale", "saleid")}


def _sell_out(draft: Draft) -> None:
    """Several buyers take tickets of one listing, and the listing has fewer each time."""
    listing = draft.draw("listing")
    for _ in range(whole(draft.random, 2, _MOST_SOLD)):
        if listing is None or listing["numtickets"] < 2:
            return
        number = draft.contents.next_number("sale", "saleid")
        sale = rows.sale(draft.random, number, listing)
        draft.insert("sale", sale)
        left = max(1, listing["numtickets"] - sale["qtysold"])
        total = listing["priceperticket"] * left
        fewer = {"numtickets": left, "totalprice": total}
        listing = draft.update("listing", listing, fewer)


MOVES: Weighted[Move] = (
    *moves_of(Habits("sale", _new_sale, _edited_sale, _moved_sale), 54),
    *moves_of(Habits("listing", _new_listing, _edited_listing, _moved_listing), 34),
    *moves_of(Habits("date", _new_day, _edited_day, _moved_day), 4),
    (8, _sell_out),
)

ECOMM = Database(
    name="ecomm",
    engine="mariadb",
    connector="tickit-ecomm",
    command="tickit-ecomm",
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
    size=2_000,
    rows=rows.rows,
    moves=MOVES,
    help="TICKIT's listings of tickets, their sales and days, in MariaDB.",
)  # fmt: skip
