"""What happens in the events' data: events come, are put off and renamed, venues change.

Listings and sales of another database are of the events that it begins with: these keep their
numbers, never start earlier, and go only when they are over. No foreign key reaches from there to
here.
"""

from __future__ import annotations

from datetime import timedelta

from sandbox.databases.draft import Draft, Move, Weighted, chosen, one_of, whole
from sandbox.databases.moves import Habits, moves_of
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.tickit import events, words
from sandbox.databases.tickit.shop import (
    CATEGORIES,
    CONCERTS,
    LAST_MOMENT,
    LAST_OLD,
    LISTINGS,
    SHOWS,
    SPORTS,
    later_row,
    occasion,
)

_GROUPS = (SPORTS, SHOWS, CONCERTS)
_ELSEWHERE = 0.3
# Of how many events the first is taken for one that is over.
_DRAWN = 5


def _next(draft: Draft, table: str, column: str) -> int:
    return draft.contents.next_number(table, column, LAST_OLD)


def _new_event(draft: Draft) -> Row | None:
    """At a venue that suits it, or at any, those that came later too."""
    random, contents = draft.random, draft.contents
    one = occasion(random, _next(draft, "event", "eventid"))
    venue, category = draft.draw("venue"), draft.draw("category")
    if venue is None or category is None:
        return None
    if random() < _ELSEWHERE or not (
        contents.has("venue", one.venueid) and contents.has("category", one.catid)
    ):
        one = one._replace(venueid=venue["venueid"], catid=category["catid"])
    return events.event(one, _name(draft, one.catid))


def _name(draft: Draft, catid: int) -> str:
    """What an event may be called; one of a later category like a band."""
    if catid <= len(CATEGORIES):
        return events.title(draft.random, catid)
    return events.band(draft.random, "Pop")


def _edited_event(draft: Draft, row: Row) -> Row:
    random = draft.random
    venue = draft.draw("venue") or row
    later = row["starttime"] + timedelta(whole(random, 1, 14))
    edits: tuple[tuple[float, Row], ...] = (
        (3, {"eventname": _name(draft, row["catid"])}),
        (1, {"venueid": venue["venueid"]}),
        (2 if later <= LAST_MOMENT else 0, events.starting(later)),
    )
    return chosen(random, edits)


def _moved_event(draft: Draft, _row: Row) -> Row:
    return {"eventid": _next(draft, "event", "eventid")}


def _free_event(draft: Draft) -> Row | None:
    return later_row(draft, "event", "eventid", LAST_OLD)


def _clear_away(draft: Draft) -> None:
    """An event that is over goes, whatever was sold for it."""
    drawn = [draft.draw("event") for _ in range(_DRAWN)]
    events_there = [row for row in drawn if row is not None]
    if events_there:
        draft.delete("event", min(events_there, key=lambda row: row["starttime"]))


def _event_fits(draft: Draft, row: Row) -> bool:
    contents = draft.contents
    return contents.has("venue", row["venueid"]) and contents.has("category", row["catid"])


def _new_venue(draft: Draft) -> Row:
    number = _next(draft, "venue", "venueid")
    return events.venue(draft.random, number, one_of(draft.random, _GROUPS))


def _edited_venue(draft: Draft, row: Row) -> Row:
    random = draft.random
    other = events.venue(random, row["venueid"], one_of(random, _GROUPS))
    edits: tuple[tuple[float, Row], ...] = (
        (3, {"venueseats": other["venueseats"]}),
        (1, {"venuename": other["venuename"]}),
    )
    return chosen(random, edits)


def _moved_venue(draft: Draft, _row: Row) -> Row:
    return {"venueid": _next(draft, "venue", "venueid")}


def _free_venue(draft: Draft) -> Row | None:
    return _without_events(draft, "venue", "venueid")


def _new_category(draft: Draft) -> Row:
    random = draft.random
    return {
        "catid": _next(draft, "category", "catid"),
        "catgroup": one_of(random, _GROUPS),
        "catname": one_of(random, words.HOBBIES),
        "catdesc": None,
    }


def _edited_category(draft: Draft, row: Row) -> Row:
    words_of_it = f"{row['catgroup']}, {row['catname']}"
    return {"catdesc": one_of(draft.random, (words_of_it, row["catname"], None))}


def _moved_category(draft: Draft, _row: Row) -> Row:
    return {"catid": _next(draft, "category", "catid")}


def _free_category(draft: Draft) -> Row | None:
    return _without_events(draft, "category", "catid")


def _without_events(draft: Draft, table: str, column: str) -> Row | None:
    """A later row that no event refers to."""
    row = later_row(draft, table, column, LAST_OLD)
    if row is None or draft.contents.holding("event", column, row[column]):
        return None
    return row


MOVES: Weighted[Move] = (
    *moves_of(
        Habits("event", _new_event, _edited_event, _moved_event, _free_event, _event_fits), 78
    ),
    (2, _clear_away),
    *moves_of(Habits("venue", _new_venue, _edited_venue, _moved_venue, _free_venue), 16),
    *moves_of(
        Habits("category", _new_category, _edited_category, _moved_category, _free_category), 4
    ),
)

EMS = Database(
    name="ems",
    engine="postgres",
    connector="tickit-ems",
    command="tickit",
    tables=(
        Table(
            "category", ("catid",), ("catid", "catgroup", "catname", "catdesc"),
        ),
        Table(
            "venue",
            ("venueid",),
            ("venueid", "venuename", "venuecity", "venuestate", "venueseats"),
        ),
        Table(
            "event",
            ("eventid",),
            ("eventid", "venueid", "catid", "dateid", "eventname", "starttime"),
        ),
    ),
    size=LISTINGS,
    rows=events.rows,
    moves=MOVES,
    help="TICKIT's categories, venues and events, in PostgreSQL.",
)  # fmt: skip
