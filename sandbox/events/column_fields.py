"""The columns of a database table as fields for the rows of a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from sandbox.databases.columns import Column
from sandbox.events import fields
from sandbox.events.fields import Convert, Field

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BITS = {
    "tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "integer": 32, "bigint": 64,
}  # fmt: skip
_FLOATS = {"real", "double precision", "float", "double"}
_EXACT = {"numeric", "decimal"}
_TIMES = {"timestamp without time zone", "datetime", "timestamp"}


def column_field(column: Column) -> Field:
    """A column as a field; types that only the database can parse stay text.

    Values that are too long, too large or too precise are rejected, not truncated.
    """
    required = not column.nullable and not column.has_default
    return Field(column.name, _converter(column), column.nullable, None, required)


def _converter(column: Column) -> Convert:
    kind = column.type.partition("(")[0].removesuffix(" unsigned")
    if kind == "boolean" or column.type == "tinyint(1)":
        return fields.boolean
    if kind in _BITS:
        return lambda value: fields.whole(value, _BITS[kind])
    if kind in _EXACT and column.precision is not None:
        precision, scale = column.precision, column.scale or 0
        return lambda value: fields.exact(value, precision, scale)
    if kind in _FLOATS:
        return fields.floating
    if kind == "date":
        return fields.day
    if kind == "timestamp with time zone":
        return lambda value: _instant(value, column.fraction)
    if kind in _TIMES:
        return lambda value: _instant(value, column.fraction).replace(tzinfo=None)
    return _text(column.length)


def _instant(value: Any, digits: int | None) -> datetime:
    micros = fields.instant(value)
    if digits is not None and micros % 10 ** (6 - digits):
        raise ValueError(f"is finer than the column, which keeps {digits} digits")
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise ValueError("is beyond the year 9999") from None


def _text(length: int | None) -> Callable[[Any], str]:
    def converted(value: Any) -> str:
        text = fields.text(value)
        if length is not None and len(text) > length:
            raise ValueError(f"has {len(text)} characters, the column takes {length}")
        if "\0" in text:
            raise ValueError("has a NUL character, which text must not contain")
        return text

    return converted
