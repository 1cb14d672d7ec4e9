"""Conversion of values in a file to numbers, text, times and booleans."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from sandbox.streams.times import instant_micros

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_TRUE, _FALSE = (frozenset({"true", "t", "yes", "1"}), frozenset({"false", "f", "no", "0"}))

Convert = Callable[[Any], Any]


class InvalidValue(ValueError):
    """An invalid value; the message names the column, the value and the reason."""


@dataclass(frozen=True)
class Field:
    """One field of a stream's values, or one column of a table.

    Attributes:
        name: Name of the field, and of the column.
        convert: Converts a value of the file; raises ValueError.
        default: Used if the column or the JSON name is missing.
        required: There is no default.
    """

    name: str
    convert: Convert
    nullable: bool
    default: Any
    required: bool

    def converted(self, values: Mapping[str, Any]) -> Any:
        """The value of the field in a row, converted to its type.

        ``values`` is the row, by field name.

        Raises:
            InvalidValue: The value is missing or invalid.
        """
        if self.name not in values:
            if self.required:
                raise InvalidValue(f"{self.name} is missing")
            return self.default
        value = values[self.name]
        if value is None:
            if self.nullable:
                return None
            raise InvalidValue(f"{self.name} is empty, and needs a value")
        try:
            return self.convert(value)
        except ValueError as error:
            raise InvalidValue(f"{self.name} {shown(value)} {error}") from error


def shown(value: Any) -> str:
    """A value as quoted in errors: short, on one line."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def number(value: Any) -> Decimal:
    """Any number, exactly."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise InvalidValue("is not a number")
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise InvalidValue("is not a number")
    return Decimal(text)


def floating(value: Any) -> float:
    """A finite floating-point number."""
    found = float(number(value))
    if math.isinf(found):
        raise ValueError("is beyond a floating-point number")
    return found


def whole(value: Any, bits: int) -> int:
    """An integer of so many bits."""
    found = number(value)
    if found != found.to_integral_value():
        raise ValueError("is not a whole number")
    if not -(2 ** (bits - 1)) <= found < 2 ** (bits - 1):
        raise ValueError(f"is beyond a {bits}-bit integer")
    return int(found)


def exact(value: Any, precision: int, scale: int) -> Decimal:
    """A decimal, without loss of digits."""
    found = number(value)
    bare = found.normalize()
    exponent = bare.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > scale:
        raise ValueError(f"has {-exponent} decimals, {scale} are kept")
    if bare.adjusted() + 1 > precision - scale:
        raise ValueError(f"is too large for decimal({precision},{scale})")
    return found.quantize(Decimal(1).scaleb(-scale))


def instant(value: Any) -> int:
    """Microseconds since 1970 UTC."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise InvalidValue("is not a time")
    return instant_micros(value)


def day(value: Any) -> date:
    """A date."""
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise ValueError("is not a date (write it like 2021-05-10)") from None


def text(value: Any) -> str:
    """Text that can be encoded as UTF-8."""
    if not isinstance(value, str):
        raise InvalidValue("is not text")
    if not value.isprintable() and not _is_unicode(value):
        raise ValueError("has half a character (a lone surrogate)")
    return value


def boolean(value: Any) -> bool:
    """A boolean: true, t, yes, 1 or false, f, no, 0."""
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("is neither true nor false")
    return word in _TRUE


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
