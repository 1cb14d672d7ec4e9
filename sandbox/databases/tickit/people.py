"""The users of database ``crm``: who sells tickets, who buys some, and what they like."""

from __future__ import annotations

from collections.abc import Iterator

from sandbox.databases.tables import Row
from sandbox.databases.tickit.names import names
from sandbox.databases.tickit.shop import USERS, chance, in_proportion
from sandbox.databases.transactions import one_of, whole
from sandbox.streams.generator import Chance

LIKES = (
    "likesports", "liketheatre", "likeconcerts", "likejazz", "likeclassical", "likeopera",
    "likerock", "likevegas", "likebroadway", "likemusicals",
)  # fmt: skip
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_DOMAINS = ("example.com", "example.net", "example.org")
# Prime, so that each number has another name.
_STRIDE = 12_345_678_923


def rows(seed: int, listings: int) -> Iterator[tuple[str, Row]]:
    """As many users as go with so many listings."""
    random = chance("users", seed)
    for userid in range(1, in_proportion(USERS, listings) + 1):
        yield "user", user(random, userid)


def user(random: Chance, userid: int) -> Row:
    """Somebody who is registered; a few do not say where they live or how to reach them."""
    first, last = names().person(random)
    return {
        "userid": userid,
        "username": username(userid),
        "firstname": first,
        "lastname": last,
        **home(random),
        "email": None if random() < 0.02 else email(random, first, last, userid),
        "phone": phone(random),
        **{column: liking(random) for column in LIKES},
    }


def username(userid: int) -> str:
    """Three letters, two digits, three letters, of no other number below 30 thousand million."""
    left = userid * _STRIDE % (26**6 * 100)
    left, tail = divmod(left, 26**3)
    head, digits = divmod(left, 100)
    return f"{_letters(head)}{digits:02}{_letters(tail)}"


def home(random: Chance) -> Row:
    """A city and its state, or neither."""
    if random() < 0.01:
        return {"city": None, "state": None}
    city, state = one_of(random, names().places)
    return {"city": city, "state": state}


def email(random: Chance, first: str, last: str, userid: int) -> str:
    """An address of a domain where nobody lives."""
    local_part = f"{first}.{last}".lower().replace(" ", "").replace("'", "")
    return f"{local_part}{userid % 1000}@{one_of(random, _DOMAINS)}"


def phone(random: Chance) -> str | None:
    """A number of those that nobody has."""
    if random() < 0.03:
        return None
    return f"({whole(random, 201, 989)}) 555-{whole(random, 0, 9_999):04}"


def liking(random: Chance) -> bool | None:
    """Yes or no; many were not asked."""
    at = random()
    return None if at < 0.4 else at < 0.7


def _letters(number: int) -> str:
    """Three letters of a number below 26 to the third."""
    high, rest = divmod(number, 26 * 26)
    return f"{_LETTERS[high]}{_LETTERS[rest // 26]}{_LETTERS[rest % 26]}"
