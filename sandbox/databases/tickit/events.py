"""The categories, venues and events of database ``ems``."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sandbox.databases.tables import Row
from sandbox.databases.tickit import words
from sandbox.databases.tickit.names import names
from sandbox.databases.tickit.shop import (
    CATEGORIES,
    CONCERTS,
    SHOWS,
    SPORTS,
    VENUES,
    Occasion,
    chance,
    dateid_of,
    occasions,
)
from sandbox.databases.transactions import one_of, whole
from sandbox.streams.generator import Chance

# How many bands play in a year, so that a band plays often.
_BANDS = 250
_SEATS = {SPORTS: (120, 900), CONCERTS: (8, 200), SHOWS: (3, 30)}


def rows(seed: int, _listings: int) -> Iterator[tuple[str, Row]]:
    """The same ones however many listings there are."""
    random = chance("events", seed)
    for catid in range(1, len(CATEGORIES) + 1):
        yield "category", category(catid)
    for group, (first, last) in VENUES.items():
        for venueid in range(first, last + 1):
            yield "venue", venue(random, venueid, group)
    bands = [
        [band(random, catname) for _ in range(_BANDS)]
        for group, catname, _ in CATEGORIES
        if group == CONCERTS
    ]
    for one in occasions(seed):
        group, catname, _ = CATEGORIES[one.catid - 1]
        name = (
            one_of(random, bands[_place(catname)])
            if group == CONCERTS
            else title(random, one.catid)
        )
        yield "event", event(one, name)


def category(catid: int) -> Row:
    """One of the categories that the shop begins with."""
    group, name, description = CATEGORIES[catid - 1]
    return {"catid": catid, "catgroup": group, "catname": name, "catdesc": description}


def venue(random: Chance, venueid: int, group: str) -> Row:
    """A place for sports, concerts or shows."""
    known = names()
    city, state = one_of(random, known.places)
    house = one_of(random, words.HOUSES[group])
    return {
        "venueid": venueid,
        "venuename": f"{one_of(random, known.last)} {house}",
        "venuecity": city,
        "venuestate": state,
        "venueseats": seats(random, group),
    }


def seats(random: Chance, group: str) -> int | None:
    """How many seats a place has: here and there null or 0, for nobody counted them."""
    at = random()
    if at < 0.2:
        return None if at < 0.15 else 0
    return whole(random, *_SEATS[group]) * 100


def event(one: Occasion, name: str) -> Row:
    """An event with its name."""
    return {
        "eventid": one.eventid,
        "venueid": one.venueid,
        "catid": one.catid,
        **starting(one.starttime),
        "eventname": name,
    }


def starting(at: datetime) -> Row:
    """The day of an event and its time."""
    return {"dateid": dateid_of(at), "starttime": at}


def title(random: Chance, catid: int) -> str:
    """What an event of one of the first categories is called."""
    group, name, _ = CATEGORIES[catid - 1]
    if group == SPORTS:
        teams = words.TEAMS[_place(name)]
        guests, hosts = (
            f"{one_of(random, towns)} {one_of(random, teams)}"
            for towns in (words.TOWNS[::2], words.TOWNS[1::2])
        )
        return f"{guests} at {hosts}"
    if group == SHOWS:
        return one_of(random, words.TITLES[_place(name)])
    return band(random, name)


def band(random: Chance, catname: str) -> str:
    """Who plays in a concert."""
    first, last = names().person(random)
    return one_of(random, words.BANDS[_place(catname)]).format(first=first, last=last)


def _place(catname: str) -> int:
    """Where a category stands among those of its group."""
    group = next(group for group, name, _ in CATEGORIES if name == catname)
    return [name for of, name, _ in CATEGORIES if of == group].index(catname)
