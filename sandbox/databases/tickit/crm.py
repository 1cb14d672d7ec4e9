"""What happens in the users' data: people register, move, and like other things.

Listings and sales of another database are by the users that it begins with: these keep their
numbers, and go only where somebody asks to be forgotten. No foreign key reaches from there to here.
"""

from __future__ import annotations

from sandbox.databases.operations import RowRules, operations_on
from sandbox.databases.tables import Database, Row, Table
from sandbox.databases.tickit import people
from sandbox.databases.tickit.names import names
from sandbox.databases.tickit.shop import LAST_OLD, LISTINGS, later_row
from sandbox.databases.transactions import Operation, Txn, Weighted, chosen, one_of


def _new_user(txn: Txn) -> Row:
    number = txn.state.next_number("user", "userid", LAST_OLD)
    return people.user(txn.random, number)


def _edited_user(txn: Txn, row: Row) -> Row:
    random = txn.random
    last = one_of(random, names().last)
    edits: tuple[tuple[float, Row], ...] = (
        (4, {one_of(random, people.LIKES): people.liking(random)}),
        (3, people.home(random)),
        (2, {"phone": people.phone(random)}),
        (1, {"email": None}),
        (
            2,
            {
                "lastname": last,
                "email": people.email(random, row["firstname"], last, row["userid"]),
            },
        ),
    )
    return chosen(random, edits)


def _moved_user(txn: Txn, _row: Row) -> Row:
    """With the name of the new number: the old one's is free for whoever comes next."""
    number = txn.state.next_number("user", "userid", LAST_OLD)
    return {"userid": number, "username": people.username(number)}


def _free_user(txn: Txn) -> Row | None:
    return later_row(txn, "user", "userid", LAST_OLD)


def _forget(txn: Txn) -> None:
    """Whoever asks for it goes, whatever they sold or bought."""
    row = txn.draw("user")
    if row is not None:
        txn.delete("user", row)


OPERATIONS: Weighted[Operation] = (
    *operations_on(RowRules("user", _new_user, _edited_user, _moved_user, _free_user), 98),
    (2, _forget),
)

CRM = Database(
    name="crm",
    engine="postgres",
    connector="tickit-crm",
    command="tickit",
    tables=(
        Table(
            "user",
            ("userid",),
            (
                "userid", "username", "firstname", "lastname", "city", "state", "email",
                "phone", *people.LIKES,
            ),
        ),
    ),
    size=LISTINGS,
    rows=people.rows,
    operations=OPERATIONS,
    help="TICKIT's users, in PostgreSQL.",
)  # fmt: skip
