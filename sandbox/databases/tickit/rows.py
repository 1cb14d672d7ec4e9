"""The days of 2008, tickets that are listed on them, and what of these was sold.

A sale is of one listing: its seller, its event, no more than its tickets. ``pricepaid`` is the
total of a sale, ``commission`` 15 % of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random

from sandbox.databases.draft import one_of, whole
from sandbox.databases.tables import Row
from sandbox.streams.generator import Chance

FIRST_DATE_ID = 1827
DAYS = 365
USERS = 49_990
EVENTS = 8_798
COMMISSION = Decimal("0.15")
_FIRST_DAY = date(2008, 1, 1)
_BEGIN = datetime.combine(_FIRST_DAY, time.min)
_DAY_NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_MONTHS = (
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
)  # fmt: skip
_HOLIDAYS = ((1, 1), (2, 14), (5, 26), (7, 4), (9, 1), (11, 27), (12, 25))
_CENT = Decimal("0.01")
_PRICES = ("20.00", "36.00", "45.50", "72.00", "99.99", "128.00", "182.00", "267.00")


def rows(seed: int, listings: int) -> Iterator[tuple[str, Row]]:
    """The days of the year, the listings, and as many sales."""
    random = Random(seed).random
    for number in range(DAYS):
        yield "date", day(FIRST_DATE_ID + number)
    made = [listing(random, listid) for listid in range(1, listings + 1)]
    for row in made:
        yield "listing", row
    for saleid in range(1, listings + 1):
        yield "sale", sale(random, saleid, one_of(random, made))


def day(dateid: int) -> Row:
    """A day, by its number."""
    on = _FIRST_DAY + timedelta(dateid - FIRST_DATE_ID)
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


def listing(random: Chance, listid: int) -> Row:
    """Tickets of one seller for one event."""
    listed = _BEGIN + timedelta(seconds=whole(random, 0, DAYS * 86_400 - 1))
    tickets = whole(random, 1, 30)
    return {
        "listid": listid,
        "sellerid": whole(random, 1, USERS),
        "eventid": whole(random, 1, EVENTS),
        "dateid": dateid_of(listed),
        "numtickets": tickets,
        **prices(random, tickets),
        "listtime": listed,
    }


def prices(random: Chance, tickets: int) -> Row:
    """What one ticket costs, and all of them."""
    price = Decimal(one_of(random, _PRICES))
    return {"priceperticket": price, "totalprice": price * tickets}


def sale(random: Chance, saleid: int, of: Row) -> Row:
    """A sale of some of a listing's tickets, up to a week after they were listed."""
    last = _BEGIN + timedelta(days=DAYS, microseconds=-1)
    after = timedelta(microseconds=whole(random, 1, 7 * 86_400_000_000))
    sold = min(of["listtime"] + after, last)
    quantity = whole(random, 1, min(of["numtickets"], 8))
    return {
        "saleid": saleid,
        "listid": of["listid"],
        "sellerid": of["sellerid"],
        "buyerid": whole(random, 1, USERS),
        "eventid": of["eventid"],
        "dateid": dateid_of(sold),
        "qtysold": quantity,
        **paid(quantity * of["priceperticket"]),
        "saletime": sold,
    }


def paid(total: Decimal) -> Row:
    """What a sale cost, and the commission on it."""
    commission = (total * COMMISSION).quantize(_CENT, ROUND_HALF_UP)
    return {"pricepaid": total, "commission": commission}


def dateid_of(at: datetime) -> int:
    """The number of a day."""
    return FIRST_DATE_ID + (at - _BEGIN).days
