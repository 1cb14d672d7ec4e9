"""The days, listings and sales of database ``ecomm``.

A sale is of one listing: its seller, its event, no more than its tickets. ``pricepaid`` is the
total of a sale, ``commission`` 15 % of that. What is for sale is listed a day before the event at
the latest, so that a sale of the day after is before the event too.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

from sandbox.databases.tables import Row
from sandbox.databases.tickit.shop import (
    BEGIN,
    DAYS,
    FIRST_DATE_ID,
    FIRST_DAY,
    LAST_MOMENT,
    SALES,
    USERS,
    chance,
    dateid_of,
    in_proportion,
    occasions,
    shuffled,
    skewed,
)
from sandbox.databases.transactions import Weighted, chosen, one_of, whole
from sandbox.streams.generator import Chance

COMMISSION = Decimal("0.15")
ON_SALE = timedelta(days=1)
"""How long before its event a listing is there, at least."""
_EARLY = timedelta(days=120)
_SECOND, _MICROSECOND = timedelta(seconds=1), timedelta(microseconds=1)
_CENT = Decimal("0.01")
_DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MONTHS = (
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
)  # fmt: skip
_HOLIDAYS = ((1, 1), (2, 14), (5, 26), (7, 4), (9, 1), (11, 27), (12, 25))
# What tickets of an event cost at first, in cents.
_PRICES = (2_000, 3_600, 4_550, 7_200, 9_999, 12_800, 18_200, 26_700)
_CHEAPEST, _DEAREST = 500, 250_000
_TICKETS: Weighted[tuple[int, int]] = ((5, (1, 4)), (3, (5, 12)), (2, (13, 30)))
_SOLD: Weighted[int] = ((5, 1), (6, 2), (2, 3), (3, 4), (1, 8))
# A part of the users alone, so that many never sell and more never buy.
_SELLERS, _BUYERS = 0.8, 0.6
_MANY_LISTINGS, _MANY_SALES, _MANY_OF_AN_EVENT = 4.0, 5.0, 3.0


def rows(seed: int, listings: int) -> Iterator[tuple[str, Row]]:
    """The days of the year, the listings, and the sales that go with so many."""
    for number in range(DAYS):
        yield "date", day(FIRST_DATE_ID + number)
    made = list(_listings(seed, listings))
    for row in made:
        yield "listing", row
    for row in _sales(seed, made):
        yield "sale", row


def _listings(seed: int, count: int) -> Iterator[Row]:
    random = chance("listings", seed)
    users = in_proportion(USERS, count)
    sellers = shuffled(random, users)[: int(users * _SELLERS)]
    events = occasions(seed)
    popular = shuffled(random, len(events))
    price_of = [one_of(random, _PRICES) for _ in events]
    for listid in range(1, count + 1):
        eventid = skewed(random, popular, _MANY_OF_AN_EVENT)
        last = events[eventid - 1].starttime - ON_SALE
        yield listing(
            random,
            listid,
            skewed(random, sellers, _MANY_LISTINGS),
            eventid,
            listed(random, max(BEGIN, last - _EARLY), last),
            price_of[eventid - 1],
        )


def _sales(seed: int, listings: list[Row]) -> Iterator[Row]:
    random = chance("sales", seed)
    users = in_proportion(USERS, len(listings))
    buyers = shuffled(random, users)[: int(users * _BUYERS)]
    starts = {one.eventid: one.starttime for one in occasions(seed)}
    left = [row["numtickets"] for row in listings]
    for saleid in range(1, min(in_proportion(SALES, len(listings)), len(left)) + 1):
        at = whole(random, 0, len(listings) - 1)
        # There are fewer sales than listings: one has tickets left.
        while not left[at]:
            at = (at + 1) % len(listings)
        of = listings[at]
        buyer = skewed(random, buyers, _MANY_SALES)
        while buyer == of["sellerid"]:
            buyer = one_of(random, buyers)
        row = sale(random, saleid, of, buyer, left[at], starts[of["eventid"]])
        left[at] -= row["qtysold"]
        yield row


def day(dateid: int) -> Row:
    """A day, by its number."""
    on = FIRST_DAY + timedelta(dateid - FIRST_DATE_ID)
    return {
        "dateid": dateid,
        "caldate": on,
        "day": _DAY_NAMES[on.weekday()],
        "week": (on.timetuple().tm_yday - 1) // 7 + 1,
        "month": _MONTHS[on.month - 1],
        "qtr": str((on.month - 1) // 3 + 1),
        "year": on.year,
        "holiday": (on.month, on.day) in _HOLIDAYS,
    }


def listing(
    random: Chance, listid: int, sellerid: int, eventid: int, at: datetime, cents: int
) -> Row:
    """Tickets of one seller for one event, listed at a time, for about a price."""
    tickets = whole(random, *chosen(random, _TICKETS))
    return {
        "listid": listid,
        "sellerid": sellerid,
        "eventid": eventid,
        **listed_at(at),
        "numtickets": tickets,
        **prices(random, tickets, cents),
    }


def listed_at(at: datetime) -> Row:
    """The time of a listing and its day."""
    return {"dateid": dateid_of(at), "listtime": at}


def listed(random: Chance, first: datetime, last: datetime) -> datetime:
    """When a listing comes: rather late than early."""
    ago = random()
    return last - int((last - first) / _SECOND * ago * ago) * _SECOND


def prices(random: Chance, tickets: int, cents: int) -> Row:
    """What one ticket costs, somewhat more or less than ``cents``, and all of them."""
    about = cents * whole(random, 70, 140) // 1_000 * 10
    price = Decimal(min(max(about, _CHEAPEST), _DEAREST)).scaleb(-2)
    return {"priceperticket": price, "totalprice": price * tickets}


def sale(random: Chance, saleid: int, of: Row, buyerid: int, left: int, end: datetime) -> Row:
    """A sale of some of the tickets that a listing has left, before ``end``."""
    sold = min(left, chosen(random, _SOLD))
    return {
        "saleid": saleid,
        "listid": of["listid"],
        "sellerid": of["sellerid"],
        "buyerid": buyerid,
        "eventid": of["eventid"],
        "qtysold": sold,
        **paid(sold * of["priceperticket"]),
        **sold_between(random, of["listtime"], end),
    }


def sold_between(random: Chance, listed_at: datetime, end: datetime) -> Row:
    """The time of a sale and its day: behind the one and before the other, rather early."""
    later = random()
    micros = (min(end, LAST_MOMENT) - listed_at) // _MICROSECOND - 1
    at = listed_at + (1 + int(micros * later * later)) * _MICROSECOND
    return {"dateid": dateid_of(at), "saletime": at}


def paid(total: Decimal) -> Row:
    """What a sale cost, and the commission on it."""
    commission = (total * COMMISSION).quantize(_CENT, ROUND_HALF_UP)
    return {"pricepaid": total, "commission": commission}
