"""Avro's binary encoding read by the letter of its specification, to judge the engine by.

Slow and plain, and it shares nothing with the engine. The specification leaves a few things
open; what is taken here, and by the engine:

- a number may have more bytes than it needs, but never more than its type can need: five for
  an int or an index, ten for a long, a length or a count; it must fit 32 or 64 bits;
- a boolean is a byte 0 or 1; text is UTF-8 as Unicode defines it;
- a block that tells its size in bytes has that size; a map has no key twice.

Logical types come after that, in :func:`misfit`, for the specification leaves them to readers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

DEEPEST = 500
MOST_EMPTY_ITEMS = 1_000


class Damaged(Exception):
    """The bytes are not what their schema says."""


@dataclass
class Branch:
    """A value of a union, with the place of its type there."""

    at: int
    value: Any


class Reader:
    """A place in some bytes, which moves behind each value read."""

    def __init__(self, data: bytes, schema: Any) -> None:
        self._data = data
        self._named: dict[str, Any] = {}
        self._schema = schema
        self._depth = -1
        self._empty = 0
        self.place = 0
        self.field = ""
        """The last field at the top that was begun."""
        self.read: dict[str, Any] = {}
        """The fields at the top that were read whole."""

    def value(self) -> Any:
        """The one value that the bytes begin with."""
        return self._read(self._schema, top=True)

    def _bytes(self, size: int) -> bytes:
        if size < 0 or self.place + size > len(self._data):
            raise Damaged(f"{size} bytes, and the record ends")
        self.place += size
        return self._data[self.place - size : self.place]

    def _number(self, bits: int) -> int:
        zigzag = shift = 0
        while True:
            (byte,) = self._bytes(1)
            zigzag += (byte % 128) << shift
            shift += 7
            if byte < 128:
                break
            if shift > bits:
                raise Damaged("a number too long")
        if zigzag >> bits:
            raise Damaged("a number too wide")
        return -(zigzag + 1) // 2 if zigzag % 2 else zigzag // 2

    def _index(self, size: int) -> int:
        at = self._number(32)
        if not 0 <= at < size:
            raise Damaged(f"index {at} of {size}")
        return at

    def _read(self, schema: Any, top: bool = False) -> Any:
        if isinstance(schema, list):
            at = self._index(len(schema))
            # Names of types that stand before the one that is there count too.
            for branch in schema:
                self._name(branch)
            return Branch(at, self._read(schema[at], top))
        if isinstance(schema, str) and schema in self._named:
            schema = self._named[schema]
        kind = schema if isinstance(schema, str) else schema["type"]
        if kind == "record":
            return self._record(schema, top)
        if kind == "array":
            return [item for _, item in self._blocks(schema["items"], keyed=False)]
        if kind == "map":
            return self._map(schema["values"])
        if kind == "enum":
            return schema["symbols"][self._index(len(schema["symbols"]))]
        if kind == "fixed":
            return self._bytes(schema["size"])
        return self._primitive(kind)

    def _primitive(self, kind: str) -> Any:
        if kind == "null":
            return None
        if kind == "boolean":
            (byte,) = self._bytes(1)
            if byte > 1:
                raise Damaged(f"boolean {byte}")
            return byte == 1
        if kind in ("int", "long"):
            return self._number(32 if kind == "int" else 64)
        if kind == "float":
            return struct.unpack("<f", self._bytes(4))[0]
        if kind == "double":
            return struct.unpack("<d", self._bytes(8))[0]
        content = self._bytes(self._number(64))
        if kind == "bytes":
            return content
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise Damaged("not UTF-8") from error

    def _name(self, schema: Any) -> None:
        if isinstance(schema, dict) and "name" in schema:
            self._named[schema["name"]] = schema

    def _record(self, schema: Any, top: bool) -> dict[str, Any]:
        self._name(schema)
        self._depth += 1
        if self._depth > DEEPEST:
            raise Damaged("too deep")
        found = {}
        for each in schema["fields"]:
            if top:
                self.field = each["name"]
            found[each["name"]] = self._read(each["type"])
            if top:
                self.read[each["name"]] = found[each["name"]]
        self._depth -= 1
        return found

    def _blocks(self, item: Any, keyed: bool) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        while count := self._number(64):
            end = None
            if count < 0:
                count, size = -count, self._number(64)
                end = self.place + size
                if size < 0 or end > len(self._data):
                    raise Damaged("a block too long")
            for _ in range(count):
                before = self.place
                key = self._primitive("string") if keyed else ""
                found.append((key, self._read(item)))
                self._empty += self.place == before
                if self._empty > MOST_EMPTY_ITEMS:
                    raise Damaged("too many items")
            if end is not None and self.place != end:
                raise Damaged("a block of another size")
        return found

    def _map(self, item: Any) -> dict[str, Any]:
        pairs = self._blocks(item, keyed=True)
        found = dict(pairs)
        if len(found) != len(pairs):
            raise Damaged("a key twice")
        return found


def misfit(schema: Any, value: Any) -> bool:
    """Whether a value of a schema is more than its logical type holds.

    A decimal has at least a byte and no more digits than it declares, a timestamp's
    microseconds fit 64 bits. Schemas here name each type once.
    """
    if isinstance(schema, list):
        return misfit(schema[value.at], value.value)
    if isinstance(schema, str):
        return False
    logical = schema.get("logicalType")
    if logical == "decimal":
        number = int.from_bytes(value, "big", signed=True)
        return not value or abs(number) >= 10 ** schema["precision"]
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return not -(2**63) <= value * 1000 < 2**63
    if schema["type"] == "record":
        return any(
            misfit(each["type"], value[each["name"]]) for each in schema["fields"]
        )
    if schema["type"] == "array":
        return any(misfit(schema["items"], item) for item in value)
    if schema["type"] == "map":
        return any(misfit(schema["values"], item) for item in value.values())
    return False
