"""What the three databases agree on: how many rows there are, and when events start.

None of it needs a row of another database. Rows that a database begins with have numbers of at
most ``LAST_OLD``, and keep them; those that come later have larger ones, and only they may get
others. An old row goes now and then, with what other rows refer to: the three databases see nothing
of one another, so that none of them can hold such a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from math import exp
from random import Random
from typing import NamedTuple

from sandbox.databases.tables import Row
from sandbox.databases.transactions import Txn, one_of, whole
from sandbox.streams.generator import Chance

LISTINGS = 192_497
SALES = 172_456
USERS = 49_990
EVENTS = 8_798
LAST_OLD = 1_000_000

FIRST_DATE_ID = 1827
DAYS = 365
LAST_DATE_ID = FIRST_DATE_ID + DAYS - 1
FIRST_DAY = date(2008, 1, 1)
BEGIN = datetime.combine(FIRST_DAY, time.min)
LAST_MOMENT = BEGIN + timedelta(days=DAYS, microseconds=-1)

SPORTS, SHOWS, CONCERTS = "Sports", "Shows", "Concerts"
CATEGORIES = (
    (SPORTS, "MLB", "Baseball of the major league"),
    (SPORTS, "NHL", "Ice hockey of the national league"),
    (SPORTS, "NFL", "American football of the national league"),
    (SPORTS, "NBA", "Basketball of the national association"),
    (SPORTS, "MLS", "Soccer of the major league"),
    (SHOWS, "Musicals", "Plays with songs and dances"),
    (SHOWS, "Plays", "Theatre without music"),
    (SHOWS, "Opera", "Plays that are sung"),
    (CONCERTS, "Pop", "Pop and rock, by bands and singers"),
    (CONCERTS, "Jazz", "Jazz and blues, large bands and small"),
    (CONCERTS, "Classical", "Orchestras, choirs and chamber music"),
)
"""Group, name and description, from number 1 on."""
VENUES = {SPORTS: (1, 80), CONCERTS: (81, 140), SHOWS: (141, 205)}
"""The first and the last venue of each group."""

# No event on the first days, which leaves time to sell what is listed for it.
_FIRST_EVENT_DAY = 3
# Rows that came later lie close: one that is there is found in a few draws.
_TRIES = 5
_HOURS = (time(14), time(14, 30), time(15), time(19), time(19, 30), time(20))


class Occasion(NamedTuple):
    """An event without its words."""

    eventid: int
    venueid: int
    catid: int
    starttime: datetime


def occasions(seed: int) -> list[Occasion]:
    """All events of the year; the same ones for the same seed."""
    random = chance("occasions", seed)
    return [occasion(random, eventid) for eventid in range(1, EVENTS + 1)]


def occasion(random: Chance, eventid: int) -> Occasion:
    """An event of any category, at a venue that suits it."""
    catid = whole(random, 1, len(CATEGORIES))
    venueid = whole(random, *VENUES[CATEGORIES[catid - 1][0]])
    on = FIRST_DAY + timedelta(whole(random, _FIRST_EVENT_DAY, DAYS - 1))
    starttime = datetime.combine(on, one_of(random, _HOURS))
    return Occasion(eventid, venueid, catid, starttime)


def dateid_of(at: datetime) -> int:
    """The number of a day."""
    return FIRST_DATE_ID + (at - BEGIN).days


def in_proportion(count: int, listings: int) -> int:
    """How many rows go with so many listings, where ``count`` go with all; some always."""
    return max(10, count * listings // LISTINGS)


def chance(what: str, seed: int) -> Chance:
    """The chance of one thing for a seed: another one than that of other things."""
    # Only random() is promised to stay the same in every Python.
    return Random(f"{what} {seed}").random


def shuffled(random: Chance, count: int) -> list[int]:
    """The numbers from 1 on, in any order: who comes first has most."""
    numbers = list(range(1, count + 1))
    for at in range(count - 1, 0, -1):
        other = int(random() * (at + 1))
        numbers[at], numbers[other] = numbers[other], numbers[at]
    return numbers


def skewed(random: Chance, numbers: Sequence[int], steepness: float) -> int:
    """One of several numbers, the first ones much more often than the last.

    A ``steepness`` of 4 gives the first tenth almost half of all, 5 more than half.
    """
    share = (exp(steepness * random()) - 1) / (exp(steepness) - 1)
    return numbers[min(int(share * len(numbers)), len(numbers) - 1)]


def later_row(txn: Txn, table: str, column: str, above: int) -> Row | None:
    """A row at random whose number is above another; None where none is found.

    ``column`` is the whole key of the table, ``above`` the largest number of those that it
    began with.
    """
    largest = txn.state.largest(table, column)
    for _ in range(_TRIES if largest > above else 0):
        row = txn.state.row(table, whole(txn.random, above + 1, largest))
        if row is not None:
            return row
    return None
