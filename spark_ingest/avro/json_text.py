"""Converts Avro to JSON text, for recursive types, which have no column type.

This is the only decoder in Python, record by record, and only for topics with such types. It is
pickled by value for Spark's workers, so it imports only the standard library at module level.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import struct
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

Decoder = Callable[[bytes, int, list[str]], int]
"""Decodes a value at an offset, appends its JSON to the parts, returns the offset after it."""

# Prefix of the full names of a writer's types, so that all have a namespace.
OWN = "own__."
# The limits of Spark's decoder in profiles/spark-defaults.conf.
_MOST_BYTES = 16_777_216
_MOST_ITEMS = 1_000_000
# Maximum depth of nested records, as in AvroWalk.java, which checks the bytes first. The stack of
# the Java decoder suffices for about 1,500.
_DEEPEST = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Undecodable(Exception):
    """Bytes that do not match their schema."""


def udf(writers: Sequence[Any], columns: Sequence[str]) -> Any:
    """A Spark UDF from the index of a writer schema and a payload to a struct of JSON texts.

    ``writers`` are Avro schemas, as for :func:`reader`; ``columns`` the wanted top-level fields.

    Returns:
        The function; its value is null if a payload is not exactly one record.
    """
    from pyspark import cloudpickle
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructField, StructType

    by_value: Any = cloudpickle
    by_value.register_pickle_by_value(sys.modules[__name__])
    spelled = [json.dumps(writer) for writer in writers]
    made: dict[int, Callable[[bytes], tuple[str | None, ...] | None]] = {}

    def read(number: int | None, payload: bytes | None) -> tuple[str | None, ...] | None:
        if number is None or payload is None:
            return None
        if number not in made:
            made[number] = reader(json.loads(spelled[number]), columns)
        return made[number](bytes(payload))

    kind = StructType([StructField(name, StringType()) for name in columns])
    return F.udf(read, kind, useArrow=False)


def reader(writer: Any, columns: Sequence[str]) -> Callable[[bytes], tuple[str | None, ...] | None]:
    """A function that decodes a payload and returns the JSON of some fields.

    ``writer`` is the self-contained Avro schema of a record, or of a union of it and null.
    """
    named: dict[str, Decoder] = {}
    branches = [
        []
        if branch == "null"
        else [
            (f["name"], _decoder(f["type"], branch.get("namespace", ""), named))
            for f in branch["fields"]
        ]
        for branch in (writer if isinstance(writer, list) else [writer])
    ]

    def read(payload: bytes) -> tuple[str | None, ...] | None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 20 * _DEEPEST))
        found: dict[str, str | None] = dict.fromkeys(columns)
        at = place = 0
        try:
            if isinstance(writer, list):
                at, place = _long(payload, place)
            if not 0 <= at < len(branches):
                raise Undecodable
            for name, decode in branches[at]:
                parts: list[str] = []
                place = decode(payload, place, parts)
                if name in found:
                    text = "".join(parts)
                    found[name] = None if text == "null" else text
        except (Undecodable, IndexError, ValueError, struct.error, RecursionError):
            return None
        return tuple(found.values()) if place == len(payload) else None

    return read


def _long(data: bytes, place: int) -> tuple[int, int]:
    shift = number = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place
        shift += 7
        if shift > 63:
            raise Undecodable


def _chunk(data: bytes, place: int) -> tuple[bytes, int]:
    size, place = _long(data, place)
    return _taken(data, place, size)


def _taken(data: bytes, place: int, size: int) -> tuple[bytes, int]:
    end = place + size
    if size < 0 or size > _MOST_BYTES or end > len(data):
        raise Undecodable
    return data[place:end], end


def _null(_data: bytes, place: int, parts: list[str]) -> int:
    parts.append("null")
    return place


def _boolean(data: bytes, place: int, parts: list[str]) -> int:
    if data[place] > 1:
        raise Undecodable
    parts.append("true" if data[place] else "false")
    return place + 1


def _number(data: bytes, place: int, parts: list[str]) -> int:
    number, place = _long(data, place)
    parts.append(str(number))
    return place


def _float(code: str) -> Decoder:
    size = struct.calcsize(code)

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        (number,) = struct.unpack_from(code, data, place)
        text = json.dumps(number)
        # NaN and infinity are not in JSON.
        parts.append(text if math.isfinite(number) else f'"{text}"')
        return place + size

    return decode


def _string(data: bytes, place: int, parts: list[str]) -> int:
    text, place = _chunk(data, place)
    parts.append(json.dumps(text.decode(), ensure_ascii=False))
    return place


def _bytes(data: bytes, place: int, parts: list[str]) -> int:
    held, place = _chunk(data, place)
    parts.append(f'"{base64.b64encode(held).decode()}"')
    return place


def _fixed(size: int) -> Decoder:
    def decode(data: bytes, place: int, parts: list[str]) -> int:
        held, place = _taken(data, place, size)
        parts.append(f'"{base64.b64encode(held).decode()}"')
        return place

    return decode


def _decimal(size: int | None, scale: int) -> Decoder:
    def decode(data: bytes, place: int, parts: list[str]) -> int:
        held, place = _chunk(data, place) if size is None else _taken(data, place, size)
        number = decimal.Decimal(int.from_bytes(held, "big", signed=True))
        with decimal.localcontext(prec=max(1, 3 * len(held))):
            parts.append(f"{number.scaleb(-scale):f}")
        return place

    return decode


def _time(logical: str) -> Decoder:
    unit = {"date": timedelta(days=1)}.get(logical, timedelta(microseconds=1))
    if logical.endswith("-millis"):
        unit = timedelta(milliseconds=1)
    zone = "" if logical.startswith("local-") else "Z"

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        number, place = _long(data, place)
        try:
            at = _EPOCH + number * unit
        except OverflowError:
            # Before the year 1 or after 9999: the number as it is.
            parts.append(str(number))
            return place
        if logical == "date":
            parts.append(f'"{date.isoformat(at.date())}"')
        else:
            parts.append(f'"{at.replace(tzinfo=None).isoformat()}{zone}"')
        return place

    return decode


def _record(fields: list[tuple[str, Decoder]]) -> Decoder:
    named = [(json.dumps(name) + ":", decode) for name, decode in fields]

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        parts.append("{")
        for at, (name, inner) in enumerate(named):
            parts.append(name if at == 0 else "," + name)
            place = inner(data, place, parts)
        parts.append("}")
        return place

    return decode


def _blocks(item: Decoder, is_map: bool) -> Decoder:
    opening, closing = ("{", "}") if is_map else ("[", "]")

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        parts.append(opening)
        total = 0
        while True:
            count, place = _long(data, place)
            if count == 0:
                parts.append(closing)
                return place
            if count < 0:
                count = -count
                _, place = _long(data, place)
            if total + count > _MOST_ITEMS:
                raise Undecodable
            for at in range(total, total + count):
                if at:
                    parts.append(",")
                if is_map:
                    place = _string(data, place, parts)
                    parts.append(":")
                place = item(data, place, parts)
            total += count

    return decode


def _union(branches: list[tuple[str, Decoder]]) -> Decoder:
    several = sum(1 for name, _ in branches if name != "null") > 1

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        at, place = _long(data, place)
        if not 0 <= at < len(branches):
            raise Undecodable
        name, inner = branches[at]
        if not several or name == "null":
            return inner(data, place, parts)
        parts.append(f"{{{json.dumps(name)}:")
        place = inner(data, place, parts)
        parts.append("}")
        return place

    return decode


def _enum(symbols: list[str]) -> Decoder:
    spelled = [json.dumps(symbol) for symbol in symbols]

    def decode(data: bytes, place: int, parts: list[str]) -> int:
        at, place = _long(data, place)
        if not 0 <= at < len(spelled):
            raise Undecodable
        parts.append(spelled[at])
        return place

    return decode


_PLAIN: dict[str, Decoder] = {
    "null": _null,
    "boolean": _boolean,
    "int": _number,
    "long": _number,
    "float": _float("<f"),
    "double": _float("<d"),
    "bytes": _bytes,
    "string": _string,
}
_TIMES = (
    "date",
    "timestamp-millis",
    "timestamp-micros",
    "local-timestamp-millis",
    "local-timestamp-micros",
)


def _decoder(schema: Any, namespace: str, named: dict[str, Decoder]) -> Decoder:
    if isinstance(schema, list):
        kinds = [_decoder(branch, namespace, named) for branch in schema]
        return _union(list(zip(_member_names(schema), kinds, strict=True)))
    if isinstance(schema, str):
        return _PLAIN.get(schema) or named[_full(schema, namespace)]
    kind, logical = schema["type"], schema.get("logicalType")
    if logical == "decimal" and kind in ("bytes", "fixed") and _makes_sense(schema):
        decode = _decimal(schema.get("size"), schema.get("scale", 0))
    elif logical in _TIMES and kind in ("int", "long"):
        decode = _time(logical)
    elif kind in _PLAIN:
        decode = _PLAIN[kind]
    elif kind == "array":
        decode = _blocks(_decoder(schema["items"], namespace, named), is_map=False)
    elif kind == "map":
        decode = _blocks(_decoder(schema["values"], namespace, named), is_map=True)
    elif kind == "enum":
        decode = _enum(schema["symbols"])
    elif kind == "fixed":
        decode = _fixed(schema["size"])
    else:
        return _named_record(schema, namespace, named)
    if "name" in schema:
        named[_full(schema["name"], schema.get("namespace", namespace))] = decode
    return decode


def _makes_sense(decimal_schema: Any) -> bool:
    """Whether a decimal's parameters are valid: otherwise Avro ignores the logical type."""
    precision, scale = decimal_schema.get("precision"), decimal_schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return False
    size = decimal_schema.get("size")
    fits = size is None or 10**precision <= 1 << max(0, 8 * size - 1)
    return precision >= 1 and 0 <= scale <= precision and fits


def _named_record(schema: Any, namespace: str, named: dict[str, Decoder]) -> Decoder:
    full = _full(schema["name"], schema.get("namespace", namespace))
    inside = full.rpartition(".")[0]
    fields: list[tuple[str, Decoder]] = []
    depth = -1
    decode = _record([])

    def itself(data: bytes, place: int, parts: list[str]) -> int:
        nonlocal depth
        depth += 1
        try:
            if depth > _DEEPEST:
                raise Undecodable
            return decode(data, place, parts)
        finally:
            depth -= 1

    # Its own fields may refer to it.
    named[full] = itself
    fields += [(f["name"], _decoder(f["type"], inside, named)) for f in schema["fields"]]
    decode = _record(fields)
    return itself


def _full(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _member_names(union: list[Any]) -> list[str]:
    """Names of the branches: type names, with the namespace if short names are not unique."""
    named = (
        branch if isinstance(branch, str) else branch.get("name", branch["type"])
        for branch in union
    )
    names = [name.removeprefix(OWN) for name in named]
    short = [name.rpartition(".")[2].lower() for name in names]
    return [
        each if short.count(each) == 1 else name.replace(".", "_").lower()
        for each, name in zip(short, names, strict=True)
    ]
