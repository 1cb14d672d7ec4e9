"""Avro's binary encoding read by the letter of its specification, to validate the engine by.

Slow and plain, and it shares nothing with the engine. The specification leaves a few things
open; what is taken here, and by the engine:

- a number may have more bytes than it needs, but never more than its type can need: five for
  an int or an index, ten for a long, a length or a count; it must fit 32 or 64 bits;
- a boolean is a byte 0 or 1; text is UTF-8 as Unicode defines it;
- a block that shows its size in bytes has that size; a map has no key twice;
- no record is more than 500 deep in others.

Logical types come after that, in :func:`breaks_type`, for the specification leaves them to readers.
"""

from __future__ import annotations

import struct
import sys
import zlib
from dataclasses import dataclass
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
DEEPEST = 500
MOST_EMPTY_ITEMS = 1_000


class Damaged(Exception):
    """The bytes are not what their schema says."""


@dataclass
class Branch:
    """A value of a union, with the place of its type there."""

    at: int
    value: Any


def resolved(schema: Any, space: str = "", named: dict[str, dict[str, Any]] | None = None) -> Any:
    """A schema with the definition itself wherever a type's name stands.

    Args:
        schema: As it is written.
        space: The namespace that names without one are in.
        named: The types defined so far, which those that follow may name.
    """
    named = {} if named is None else named
    if isinstance(schema, list):
        return [resolved(branch, space, named) for branch in schema]
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else named[_full(schema, space)]
    kind = schema["type"]
    if kind in ("array", "map"):
        inside = "items" if kind == "array" else "values"
        return {**schema, inside: resolved(schema[inside], space, named)}
    if kind not in ("record", "enum", "fixed"):
        return kind if list(schema) == ["type"] else schema
    full = _full(schema["name"], schema.get("namespace", space))
    # A record's fields may name the record.
    made = named[full] = {**schema, "name": full}
    if kind == "record":
        own = full.rpartition(".")[0]
        made["fields"] = [
            {"name": each["name"], "type": resolved(each["type"], own, named)}
            for each in schema["fields"]
        ]
    return made


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


class Reader:
    """A place in some bytes, which moves behind each value read."""

    def __init__(self, data: bytes, schema: Any) -> None:
        """Stand before a value.

        Args:
            data: The bytes.
            schema: Resolved.
        """
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * DEEPEST))
        self._data = data
        self._schema = schema
        self._depth = -1
        self._empty = 0
        self.place = 0
        self.fields: list[Any] = []
        """The fields of the record at the top."""
        self.field = ""
        """The last of these that was begun."""
        self.read: dict[str, Any] = {}
        """Those that were read whole."""

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
            return Branch(at, self._read(schema[at], top))
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

    def _record(self, schema: Any, top: bool) -> dict[str, Any]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Damaged("too deep")
        if top:
            self.fields = schema["fields"]
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


def breaks_type(schema: Any, value: Any) -> bool:
    """Whether a value of a schema is more than its logical type holds.

    A decimal has at least a byte and no more digits than it declares, a timestamp's
    microseconds fit 64 bits.
    """
    if isinstance(schema, list):
        return breaks_type(schema[value.at], value.value)
    if isinstance(schema, str):
        return False
    if is_decimal(schema):
        number = int.from_bytes(value, "big", signed=True)
        return not value or abs(number) >= 10 ** schema["precision"]
    if schema.get("logicalType") in ("timestamp-millis", "local-timestamp-millis"):
        return not -(2**63) <= value * 1000 < 2**63
    if schema["type"] == "record":
        return any(breaks_type(each["type"], value[each["name"]]) for each in schema["fields"])
    if schema["type"] == "array":
        return any(breaks_type(schema["items"], item) for item in value)
    if schema["type"] == "map":
        return any(breaks_type(schema["values"], item) for item in value.values())
    return False


def is_decimal(schema: Any) -> bool:
    """Whether a type is a decimal: one with parameters that make no sense is its bytes."""
    if not isinstance(schema, dict) or schema.get("logicalType") != "decimal":
        return False
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if schema["type"] not in ("bytes", "fixed") or not 0 <= scale <= precision:
        return False
    if schema["type"] == "fixed":
        return bool(10**precision <= 2 ** (8 * schema["size"] - 1))
    return bool(precision > 0)


def contains_itself(schema: Any) -> bool:
    """Whether a resolved type is or leads to a record that contains itself."""
    above: set[str] = set()
    done: set[str] = set()

    def leads(part: Any) -> bool:
        if isinstance(part, list):
            return any(leads(branch) for branch in part)
        if isinstance(part, str):
            return False
        if part["type"] in ("array", "map"):
            return leads(part.get("items", part.get("values")))
        name = part.get("name", "")
        if part["type"] != "record" or name in done:
            return name in above
        above.add(name)
        done.add(name)
        found = any(leads(each["type"]) for each in part["fields"])
        above.remove(name)
        return found

    return leads(schema)


def names_again(schema: Any) -> bool:
    """Whether a name stands somewhere in a schema, as it is written, for its type."""
    if isinstance(schema, list):
        return any(names_again(branch) for branch in schema)
    if isinstance(schema, str):
        return schema not in PRIMITIVES
    inside = [schema[key] for key in ("items", "values") if key in schema]
    inside += [each["type"] for each in schema.get("fields", ())]
    return any(names_again(each) for each in inside)


def unframed(
    part: str, framing: str, ids: str, data: bytes, headers: list[tuple[str, bytes]]
) -> tuple[int | None, bytes]:
    """The schema id that a value or key carries, None where it carries none; what is behind.

    Args:
        part: Which of the two.
        framing: As sources name it.
        ids: Whose ids they are, of Apicurio's.
        data: The value or key.
        headers: Of its record.
    """
    if framing == "avro":
        return 0, data
    if framing == "apicurio-headers":
        named = [held for name, held in headers if name == f"apicurio.{part}.{ids}Id"]
        is_id = bool(named) and len(named[0]) == 8
        return (int.from_bytes(named[0], "big") if is_id else None), data
    if framing == "glue":
        payload = data[18:]
        if data[:1] != b"\x03" or data[1:2] not in (b"\x00", b"\x05") or len(data) < 18:
            return None, data
        if data[1] == 5:
            inflater = zlib.decompressobj()
            try:
                payload = inflater.decompress(payload)
            except zlib.error:
                return None, data
            if not inflater.eof or inflater.unused_data:
                return None, data
        return int.from_bytes(data[2:9], "big"), payload
    size = 4 if framing == "confluent" else 8
    if data[:1] != b"\x00" or len(data) < 1 + size:
        return None, data
    return int.from_bytes(data[1 : 1 + size], "big"), data[1 + size :]
