"""What a purchase is: how many lines and units, who is a member, what is paid for it."""

from __future__ import annotations

LINES = (1,) * 13 + (2,) * 5 + (3,) * 2
"""Lines of a transaction, each entry as likely as the others; likewise below."""
QUANTITIES = (1,) * 24 + (2,) * 5 + (3,)
"""Units of a line."""
MEMBER = (True,) * 3 + (False,) * 7
"""Whether the buyer of a transaction is a member."""

SUPPLEMENT_CENTS = 199
DISCOUNT_PERCENT = 10
LARGEST_TRANSACTION = 2**63 - 1
"""The largest number of a transaction."""

_OFTEN = (True,) * 5 + (False,) * 5
_SELDOM = (True,) * 2 + (False,) * 8
_SUPPLEMENTS = {"CS": _SELDOM, "SF": _OFTEN, "SC": _OFTEN, "IS": _SELDOM}

# Odd: multiplying by them modulo a power of two takes no two numbers to the same one.
_FIRST_FACTOR, _SECOND_FACTOR = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9


def supplements(product_id: str) -> tuple[bool, ...]:
    """Whether a line of a product has supplements, each entry as likely as the others."""
    return _SUPPLEMENTS[product_id[:2]]


def total_cents(price_cents: int, quantity: int, *, is_member: bool, add_supplements: bool) -> int:
    """What is paid for a line: round(quantity * (price + supplement) * (1 - discount), 2).

    Exact, half a cent up.
    """
    unit = price_cents + (SUPPLEMENT_CENTS if add_supplements else 0)
    share = 100 - (DISCOUNT_PERCENT if is_member else 0)
    return (quantity * unit * share + 50) // 100


def transaction_id(number: int) -> str:
    """The id of a transaction: up to 19 digits that look random.

    The number alone decides, no seed and no time, and no two numbers give the same id: runs
    whose numbers differ never share one. ``number`` is 1 to ``LARGEST_TRANSACTION``.
    """
    mixed = number * _FIRST_FACTOR & LARGEST_TRANSACTION
    mixed ^= mixed >> 32
    return str(mixed * _SECOND_FACTOR & LARGEST_TRANSACTION)
