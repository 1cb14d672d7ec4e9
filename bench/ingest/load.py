"""The records of the benchmark: receipts of a shop, encoded before they are sent.

One in two thousand records or so is a bad one, of a known kind, and a few are tombstones, so
that what a system loses can be counted against what was sent.
"""

from __future__ import annotations

import io
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import fastavro

from sandbox.streams.avro_bytes import frame

# A payload has its number written over this one's digits: no two receipts are alike.
_NUMBER_DIGITS = 16
_POOL_BYTES = 24_000_000
_POOL_RECORDS = 60_000
_FIRST_DAY = datetime(2026, 11, 1, tzinfo=UTC)
_LETTERS = "abcdefghijklmnopqrstuvwxyz      "
PERIOD = 10_000
"""Records after which the kinds begin again."""

# By the number that is left when the record's own is divided by PERIOD.
_KINDS = {
    1000: "tombstone",
    3000: "cut short",
    4001: "garbage",
    5000: "not framed",
    6001: "bytes left over",
    7000: "another schema's bytes",
}
BAD = frozenset(_KINDS.values()) - {"tombstone"}
"""Kinds of records that cannot be decoded."""


@dataclass(frozen=True)
class Shape:
    """How records look.

    Attributes:
        fields: Of the newer schema; the older one lacks the last of them.
        value_bytes: Mean size of a framed value; what the fields need when that is more.
    """

    fields: int = 15
    value_bytes: int = 133


@dataclass(frozen=True)
class Sent:
    """What is in a topic.

    Attributes:
        records: All of them.
        value_bytes: Bytes of all values.
        kinds: How many of each kind; ``good`` is one of them.
    """

    records: int = 0
    value_bytes: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def bad(self) -> int:
        """Number of bad records."""
        return sum(self.kinds[kind] for kind in BAD)

    @property
    def landing(self) -> int:
        """Records that belong in the table, tombstones among them."""
        return self.records - self.bad

    def __add__(self, other: Sent) -> Sent:
        return Sent(
            self.records + other.records,
            self.value_bytes + other.value_bytes,
            self.kinds + other.kinds,
        )


def schemas(shape: Shape) -> tuple[dict[str, Any], dict[str, Any]]:
    """The older and the newer schema: the newer one has one more field, nullable."""
    fields = _fields(shape.fields)
    older, newer = (
        {
            "type": "record",
            "name": "Receipt",
            "namespace": "bench",
            "fields": [{"name": name, **kind} for name, kind in chosen],
        }
        for chosen in (fields[:-1], fields)
    )
    return older, newer


def payloads(
    shape: Shape, seed: int, ids: tuple[int, int], most: int = _POOL_RECORDS
) -> list[bytes]:
    """Framed values, written by the older and the newer schema in turn.

    Args:
        shape: How they look.
        seed: The same seed gives the same values.
        ids: The registry's ids of the older and the newer schema.
        most: How many at most; fewer where they are large.
    """
    chance = random.Random(seed)
    encode = [fastavro.parse_schema(schema) for schema in schemas(shape)]
    details = sum(name.startswith(_DETAIL) for name, _ in _fields(shape.fields))
    count = max(200, min(most, _POOL_BYTES // shape.value_bytes))

    def encoded(number: int, note: str) -> bytes:
        out = io.BytesIO()
        row = _values(chance, number, note) | _details(chance, details)
        which = number % 2
        fastavro.schemaless_writer(out, encode[which], row)
        return frame(ids[which]) + out.getvalue()

    bare = sum(len(encoded(number, "")) for number in range(200)) / 200
    room = max(0, round(shape.value_bytes - bare))
    # Lengths spread evenly around the mean.
    return [
        encoded(number, _note(chance, chance.randint(room // 2, room + (room + 1) // 2)))
        for number in range(count - count % 2)
    ]


def records(
    pool: list[bytes], first: int, count: int
) -> Iterator[tuple[int, bytes, bytes | None, str]]:
    """Records to send.

    Args:
        pool: What :func:`payloads` made.
        first: Number of the first of them.
        count: How many.

    Yields:
        Number, key, value and kind.
    """
    size = len(pool)
    # Behind the frame and the length of the first field.
    begin = 6
    end = begin + _NUMBER_DIGITS
    for number in range(first, first + count):
        digits = b"%016d" % number
        base = pool[number % size]
        value: bytes | None = base[:begin] + digits + base[end:]
        kind = _KINDS.get(number % PERIOD, "good")
        if kind != "good":
            value = _spoiled(kind, base, pool[(number + 1) % size])
        yield number, b"r-" + digits, value, kind


def _spoiled(kind: str, value: bytes, neighbour: bytes) -> bytes | None:
    """The bytes of a bad record."""
    if kind == "tombstone":
        return None
    if kind == "cut short":
        return value[: len(value) // 2]
    if kind == "garbage":
        return value[:5] + b"\xff" * 40
    if kind == "not framed":
        return b'{"receipt": "of another program"}'
    if kind == "bytes left over":
        return value + b"zz"
    # The neighbour was written by the other schema.
    return value[:5] + neighbour[5:]


def _note(chance: random.Random, length: int) -> str:
    return "".join(chance.choices(_LETTERS, k=length))


def _decimal(precision: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def _optional(kind: Any) -> dict[str, Any]:
    return {"type": ["null", kind], "default": None}


_TIME = {"type": "long", "logicalType": "timestamp-micros"}
_COARSE_TIME = {"type": "long", "logicalType": "timestamp-millis"}
_NEEDED: list[tuple[str, dict[str, Any]]] = [
    ("receipt_number", {"type": "string"}),
    ("sold_at", {"type": _TIME}),
    ("total_amount", {"type": _decimal(12)}),
    ("note", {"type": "string"}),
]
_MORE: list[tuple[str, dict[str, Any]]] = [
    ("booked_at", {"type": _COARSE_TIME}),
    ("shop_id", {"type": "int"}),
    ("product_code", {"type": "string"}),
    ("unit_price", {"type": _decimal(10)}),
    ("pieces", {"type": "int"}),
    ("is_refund", {"type": "boolean"}),
    ("cashier", _optional("string")),
    ("customer_id", _optional("long")),
    ("discount_amount", _optional(_decimal(10))),
    ("coupon", _optional("string")),
]
_LAST: tuple[str, dict[str, Any]] = ("channel", _optional("string"))
_DETAIL = "detail_"
_EXTRA = ("int", "string", "double", "long", "boolean")


def _fields(count: int) -> list[tuple[str, dict[str, Any]]]:
    """So many fields: what every receipt has, then more, and last what the newer schema adds."""
    extra: list[tuple[str, dict[str, Any]]] = [
        (f"{_DETAIL}{number:02}", _optional(_EXTRA[number % len(_EXTRA)]))
        for number in range(count)
    ]
    return [*(_NEEDED + _MORE + extra)[: count - 1], _LAST]


def _values(chance: random.Random, number: int, note: str) -> dict[str, Any]:
    """One receipt, with a value for every field but the details."""
    sold = _FIRST_DAY + timedelta(
        seconds=chance.randrange(172_800), microseconds=chance.randrange(1_000_000)
    )
    price = Decimal(chance.randrange(50, 9_000)) / 100
    pieces = chance.randrange(1, 9)
    off = Decimal(chance.randrange(1, 40)) / 100 if chance.random() < 0.3 else None
    member = chance.random() < 0.5
    return {
        "receipt_number": f"{number:0{_NUMBER_DIGITS}}",
        "sold_at": sold,
        "total_amount": price * pieces - (off or 0),
        "note": note,
        "booked_at": sold + timedelta(milliseconds=chance.randrange(5_000)),
        "shop_id": chance.randrange(800),
        "product_code": f"P{chance.randrange(4_000):05}",
        "unit_price": price,
        "pieces": pieces,
        "is_refund": chance.random() < 0.02,
        "cashier": f"c{chance.randrange(200)}" if chance.random() < 0.8 else None,
        "customer_id": chance.randrange(1_000_000) if member else None,
        "discount_amount": off,
        "coupon": f"K{chance.randrange(90)}" if off is not None else None,
        "channel": chance.choice(("web", "app", None)),
    }


def _details(chance: random.Random, count: int) -> dict[str, Any]:
    return {f"{_DETAIL}{at:02}": _detail(chance, _EXTRA[at % len(_EXTRA)]) for at in range(count)}


def _detail(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.2:
        return None
    number = chance.randrange(100_000)
    match kind:
        case "string":
            return f"s{number % 1000}"
        case "double":
            return number / 8
        case "boolean":
            return number % 2 == 0
        case _:
            return number
