"""What happens in the events' data: events come, are put off and renamed, venues change.

Listings and sales of another database are of the events that it begins with: these keep their
numbers, never start earlier, and go only when they are over. No foreign key reaches from there to
here.
"""

from __future__ import annotations

from datetime import timedelta

from sandbox.databases.operations import RowRules, operations_on
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
from sandbox.databases.transactions import Operation, Txn, Weighted, chosen, one_of, whole

_GROUPS = (SPORTS, SHOWS, CONCERTS)
_ELSEWHERE = 0.3
# Of how many events the first is taken for one that is over.
_DRAWN = 5


def _next(txn: Txn, table: str, column: str) -> int:
    return txn.state.next_number(table, column, LAST_OLD)


def _new_event(txn: Txn) -> Row | None:
    """At a venue that suits it, or at any, those that came later too."""
    random, state = txn.random, txn.state
    one = occasion(random, _next(txn, "event", "eventid"))
    venue, category = txn.draw("venue"), txn.draw("category")
    if venue is None or category is None:
        return None
    if random() < _ELSEWHERE or not (
        state.has("venue", one.venueid) and state.has("category", one.catid)
    ):
        one = one._replace(venueid=venue["venueid"], catid=category["catid"])
    return events.event(one, _name(txn, one.catid))


def _name(txn: Txn, catid: int) -> str:
    """What an event may be called; one of a later category like a band."""
    if catid <= len(CATEGORIES):
        return events.title(txn.random, catid)
    return events.band(txn.random, "Pop")


def _edited_event(txn: Txn, row: Row) -> Row:
    random = txn.random
    venue = txn.draw("venue") or row
    later = row["starttime"] + timedelta(whole(random, 1, 14))
    edits: tuple[tuple[float, Row], ...] = (
        (3, {"eventname": _name(txn, row["catid"])}),
        (1, {"venueid": venue["venueid"]}),
        (2 if later <= LAST_MOMENT else 0, events.starting(later)),
    )
    return chosen(random, edits)


def _moved_event(txn: Txn, _row: Row) -> Row:
    return {"eventid": _next(txn, "event", "eventid")}


def _free_event(txn: Txn) -> Row | None:
    return later_row(txn, "event", "eventid", LAST_OLD)


def _clear_away(txn: Txn) -> None:
    """An event that is over goes, whatever was sold for it."""
    drawn = [txn.draw("event") for _ in range(_DRAWN)]
    events_there = [row for row in drawn if row is not None]
    if events_there:
        txn.delete("event", min(events_there, key=lambda row: row["starttime"]))


def _event_fits(txn: Txn, row: Row) -> bool:
    state = txn.state
    return state.has("venue", row["venueid"]) and state.has("category", row["catid"])


def _new_venue(txn: Txn) -> Row:
    number = _next(txn, "venue", "venueid")
    return events.venue(txn.random, number, one_of(txn.random, _GROUPS))


def _edited_venue(txn: Txn, row: Row) -> Row:
    random = txn.random
    other = events.venue(random, row["venueid"], one_of(random, _GROUPS))
    edits: tuple[tuple[float, Row], ...] = (
        (3, {"venueseats": other["venueseats"]}),
        (1, {"venuename": other["venuename"]}),
    )
    return chosen(random, edits)


def _moved_venue(txn: Txn, _row: Row) -> Row:
    return {"venueid": _next(txn, "venue", "venueid")}


def _free_venue(txn: Txn) -> Row | None:
    return _without_events(txn, "venue", "venueid")


def _new_category(txn: Txn) -> Row:
    random = txn.random
    return {
        "catid": _next(txn, "category", "catid"),
        "catgroup": one_of(random, _GROUPS),
        "catname": one_of(random, words.HOBBIES),
        "catdesc": None,
    }


def _edited_category(txn: Txn, row: Row) -> Row:
    words_of_it = f"{row['catgroup']}, {row['catname']}"
    return {"catdesc": one_of(txn.random, (words_of_it, row["catname"], None))}


def _moved_category(txn: Txn, _row: Row) -> Row:
    return {"catid": _next(txn, "category", "catid")}


def _free_category(txn: Txn) -> Row | None:
    return _without_events(txn, "category", "catid")


def _without_events(txn: Txn, table: str, column: str) -> Row | None:
    """A later row that no event refers to."""
    row = later_row(txn, table, column, LAST_OLD)
    if row is None or txn.state.holding("event", column, row[column]):
        return None
    return row


OPERATIONS: Weighted[Operation] = (
    *operations_on(
        RowRules("event", _new_event, _edited_event, _moved_event, _free_event, _event_fits), 78
    ),
    (2, _clear_away),
    *operations_on(RowRules("venue", _new_venue, _edited_venue, _moved_venue, _free_venue), 16),
    *operations_on(
        RowRules("category", _new_category, _edited_category, _moved_category, _free_category), 4
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
    operations=OPERATIONS,
    help="TICKIT's categories, venues and events, in PostgreSQL.",
)  # fmt: skip
