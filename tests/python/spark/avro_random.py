"""Random records of Avro schemas, sound and damaged."""

from __future__ import annotations

import random
import struct
from typing import Any

from tests.python.spark.avro_reference import is_decimal

_TEXTS = ("", "a", "Ada", "żółw", "日本語", "🐢 and \x00", "x" * 70, "né" * 40)
_ESCAPED = ('"', "\\", "\n\t\r\b\f", "\x1b \x7f \u2028")
# From 1970 to the ends of the years that ISO 8601 can write, and a day more.
_DAYS = (719_162, 719_163, 2_932_896, 2_932_897)
# Records of one value, and records in each other: a type that contains itself has no end.
_MOST_RECORDS = 40
_DEEPEST = 6
# As deep as is taken, and deeper.
_CHAINS = (3, 60, 499, 500, 501, 502, 700)


class Writer:
    """Writes random values of a schema, and now and then something that is none."""

    def __init__(self, chance: random.Random, harm: float) -> None:
        """Bind to a source of chance.

        Args:
            chance: The source.
            harm: How likely each number, text, boolean or index is a bad one.
        """
        self._chance = chance
        self._harm = harm
        self._left = self._depth = 0

    def value(self, schema: Any) -> bytes:
        """One value of a schema, its names followed."""
        self._left, self._depth = _MOST_RECORDS, 0
        return b"".join(self._write(schema))

    def _is_enough(self) -> bool:
        return self._left <= 0 or self._depth > _DEEPEST

    def _bad(self) -> bool:
        return self._chance.random() < self._harm

    def _number(self, number: int, bits: int = 64) -> bytes:
        if self._bad():
            return self._chance.choice(
                (
                    zigzag(number + (self._chance.choice((1, -3)) << (bits - 1))),
                    zigzag(number + (1 << self._chance.randint(bits - 2, bits + 5))),
                    # More bytes than it needs: still the same number.
                    zigzag(number, self._chance.randint(2, 11)),
                )
            )
        return zigzag(number)

    def _index(self, at: int, size: int) -> bytes:
        if self._bad():
            return self._number(self._chance.choice((size, -1, 2**31 - 1)), 32)
        return self._number(at, 32)

    def _chunk(self, content: bytes) -> bytes:
        size = len(content)
        if self._bad():
            size += self._chance.choice((-1, 1, 5, -size - 1, 2**31, 2**40))
        return self._number(size) + content

    def _text(self) -> bytes:
        content = self._chance.choice(_TEXTS + _ESCAPED).encode()
        if self._bad():
            at = self._chance.randint(0, len(content))
            harm = (
                b"\xff",
                b"\x80",
                b"\xc0\x80",
                b"\xed\xa0\x80",
                b"\xe3\x81",
                b"\xe0\x80\x80",
                b"\xf0\x80\x80\x80",
                b"\xf4\x90\x80\x80",
                b"\xf5",
            )
            content = content[:at] + self._chance.choice(harm) + content[at:]
        return self._chunk(content)

    def _write(self, schema: Any) -> list[bytes]:
        chance = self._chance
        if isinstance(schema, list):
            at = chance.randrange(len(schema))
            if "null" in schema and self._is_enough():
                at = schema.index("null")
            return [self._index(at, len(schema)), *self._write(schema[at])]
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "record":
            return self._record(schema)
        if kind in ("array", "map"):
            return [self._blocks(schema)]
        if is_decimal(schema):
            return [self._decimal(schema)]
        if kind == "enum":
            size = len(schema["symbols"])
            return [self._index(chance.randrange(size), size)]
        if kind == "fixed":
            return [chance.randbytes(schema["size"])]
        return [self._primitive(kind)]

    def _record(self, schema: Any) -> list[bytes]:
        fields = [each["type"] for each in schema["fields"]]
        if _is_chain(schema):
            # Sound ones stay well within what is taken.
            most = len(_CHAINS) if self._harm else 2
            links = self._chance.choice((0, 1, 2, self._chance.choice(_CHAINS[:most])))
            return [b"\x02" * links, b"\x00"]
        self._left -= 1
        self._depth += 1
        parts = [part for each in fields for part in self._write(each)]
        self._depth -= 1
        return parts

    def _primitive(self, kind: str) -> bytes:
        chance = self._chance
        if kind == "null":
            return b""
        if kind == "boolean":
            return bytes([chance.choice((2, 127, 255)) if self._bad() else chance.randrange(2)])
        if kind == "int":
            return self._number(_some_number(chance, 31), 32)
        if kind == "long":
            return self._number(_some_number(chance, 52))
        if kind == "float":
            return chance.choice((chance.randbytes(4), struct.pack("<f", chance.random())))
        if kind == "double":
            return chance.choice((chance.randbytes(8), struct.pack("<d", chance.random())))
        if kind == "string":
            return self._text()
        return self._chunk(chance.randbytes(chance.choice((0, 1, 8, 70))))

    def _decimal(self, schema: Any) -> bytes:
        chance = self._chance
        number = _some_number(chance, 10 ** schema["precision"], power=False)
        if self._bad():
            number += chance.choice((1, -1)) * 2 ** chance.randint(60, 72)
        size: int = schema.get("size", number.bit_length() // 8 + 1)
        if "size" not in schema and chance.random() < 0.2:
            size += chance.randint(1, 9)
        content = (number % (1 << 8 * size)).to_bytes(size, "big")
        if "size" in schema:
            return content
        return self._chunk(b"" if self._bad() else content)

    def _blocks(self, schema: Any) -> bytes:
        chance = self._chance
        parts = []
        key = 0
        blocks = 0 if self._is_enough() else chance.choice((0, 1, 1, 2))
        for _ in range(blocks):
            count = chance.randint(1, 3)
            items = b""
            for _ in range(count):
                if schema["type"] == "map":
                    key += not self._bad()
                    items += self._chunk(f"k{key}".encode())
                items += b"".join(self._write(schema.get("items", schema.get("values"))))
            if chance.random() < 0.3:
                size = len(items) + (chance.choice((1, -1)) if self._bad() else 0)
                parts += [self._number(-count), self._number(size), items]
            else:
                parts += [self._number(count), items]
        return b"".join((*parts, self._number(0)))


def damaged(chance: random.Random, one: bytes, other: bytes) -> bytes:
    """Bytes with a change anywhere, whatever stands there."""
    at = chance.randint(0, max(0, len(one) - 1))
    kind = chance.randrange(6)
    if kind == 0 and one:
        return one[:at] + bytes([one[at] ^ 1 << chance.randrange(8)]) + one[at + 1 :]
    if kind == 1:
        return one[:at]
    if kind == 2:
        return one[:at] + chance.randbytes(chance.randint(1, 4)) + one[at:]
    if kind == 3:
        return one[:at] + other[chance.randint(0, len(other)) :]
    if kind == 4:
        return one + chance.randbytes(chance.randint(1, 3))
    run = chance.choice((b"\x80", b"\xff", b"\x00", b"\x7f")) * chance.randint(1, 11)
    return one[:at] + run + one[at + len(run) :]


def _is_chain(record: Any) -> bool:
    """Whether a record holds nothing but the next one, or null."""
    (first, *others) = record["fields"]
    kind = first["type"]
    is_nullable = isinstance(kind, list) and kind[0] == "null" and len(kind) == 2
    return not others and is_nullable and kind[1] is record


def zigzag(number: int, least_bytes: int = 1) -> bytes:
    """A number as Avro writes it, however wide, in as many bytes at least."""
    rest = number * 2 if number >= 0 else -number * 2 - 1
    groups: list[int] = []
    while rest or len(groups) < least_bytes:
        groups.append(rest % 128)
        rest //= 128
    return bytes([*(group + 128 for group in groups[:-1]), groups[-1]])


def _some_number(chance: random.Random, size: int, power: bool = True) -> int:
    most = 2**size if power else size
    usual = (0, 1, 63, 64, most - 1, chance.randrange(most), chance.randrange(99_999))
    number = chance.choice((*usual, chance.choice(_DAYS)))
    return chance.choice((1, -1)) * min(number, most - 1)
