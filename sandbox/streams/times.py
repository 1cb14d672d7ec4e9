"""Instants as people and files write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
_BLANK_BEFORE_ZONE = re.compile(r"\s+(?=[+-]\d{2}(:?\d{2})?$|[zZ]$)", re.ASCII)

# The unit of an epoch number follows from its size: each bound is 5138 in the unit before it
# and 1973 in its own, so no instant between those years is misread.
_SMALLEST_EPOCH = 10**8
_EPOCH_UNITS = ((10**11, 1_000_000), (10**14, 1_000), (10**17, 1))


def instant_micros(written: str | int | Decimal) -> int:
    """Microseconds since 1970 UTC of an instant.

    Args:
        written: ISO 8601 (``T`` or a blank between date and time; offsets as ``Z``,
            ``+00``, ``+0000``, ``+00:00``, also after a blank; UTC when there is none;
            a date alone is its midnight), or a number since 1970 in seconds,
            milliseconds, microseconds or nanoseconds, distinguished by its size.

    Raises:
        ValueError: It is no instant; the text says why, to follow "<value> ".
    """
    text = str(written).strip()
    if _NUMBER.fullmatch(text):
        return _epoch_micros(Decimal(text))
    try:
        moment = datetime.fromisoformat(_BLANK_BEFORE_ZONE.sub("", text))
    except ValueError:
        raise ValueError("is not a time (write it like 2021-05-10 13:04:06.996+00)") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _epoch_micros(number: Decimal) -> int:
    if abs(number) < _SMALLEST_EPOCH:
        raise ValueError(
            "is too small for a number since 1970 in seconds or finer"
            " (write a time like 2021-05-10 13:04:06+00)"
        )
    for bound, micros in _EPOCH_UNITS:
        if abs(number) < bound:
            return int((number * micros) // 1)
    return int((number / 1_000) // 1)


def as_text(millis: int) -> str:
    """ISO 8601 in UTC of milliseconds since 1970."""
    moment = _EPOCH + timedelta(milliseconds=millis)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
