"""Make what a file says fit an Avro schema, or say why it does not."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_writer

from sandbox.events.times import instant_micros
from sandbox.streams import Stream
from sandbox.streams.avro_bytes import frame
from spark_ingest.errors import ConfigurationError

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_INT_BITS = {"int": 32, "long": 64}
_TRUE, _FALSE = (
    frozenset({"true", "t", "yes", "1"}),
    frozenset({"false", "f", "no", "0"}),
)

Convert = Callable[[Any], Any]


class Misfit(ValueError):
    """A value that does not fit; the text names the column, the value and the reason."""


@dataclass(frozen=True)
class Field:
    """One field of a stream's values.

    Attributes:
        name: Its name, that of the column too.
        convert: From what a file says to what Avro encodes; ValueError when it cannot.
        nullable: Null is a value of it.
        default: Used where the column or the JSON name is missing.
        required: There is no default.
    """

    name: str
    convert: Convert
    nullable: bool
    default: Any
    required: bool

    def fitted(self, values: Mapping[str, Any]) -> Any:
        """What the field is in a row, as Avro encodes it.

        Args:
            values: The row, by field name.

        Raises:
            Misfit: Its value is missing or does not fit.
        """
        if self.name not in values:
            if self.required:
                raise Misfit(f"{self.name} is missing")
            return self.default
        value = values[self.name]
        if value is None:
            if self.nullable:
                return None
            raise Misfit(f"{self.name} is empty, and the stream needs it")
        try:
            return self.convert(value)
        except ValueError as error:
            raise Misfit(f"{self.name} {shown(value)} {error}") from error


class Fitter:
    """Turns rows into framed keys and values of one stream.

    Times keep what the schema keeps, milliseconds or microseconds: what is finer is cut
    off, never rounded up, as Kafka and Java do it, so that no event moves into the future.

    Args:
        stream: Whose schemas to fit.
        key_schema_id: The registry's id of its key schema.
        value_schema_id: The registry's id of its value schema.
    """

    def __init__(
        self, stream: Stream, key_schema_id: int, value_schema_id: int
    ) -> None:
        self.fields = fields_of(stream)
        self._key_field = stream.key_field
        self._key_frame, self._value_frame = (
            frame(key_schema_id),
            frame(value_schema_id),
        )
        self._key_schema = parse_schema(stream.key_schema)
        self._value_schema = parse_schema(stream.value_schema)

    def fit(self, values: Mapping[str, Any]) -> tuple[bytes | None, bytes]:
        """The framed key and value of one row; no key where its field is null.

        Args:
            values: By field name; what is no field is ignored.

        Raises:
            Misfit: A value is missing or does not fit.
        """
        record = {field.name: field.fitted(values) for field in self.fields}
        value = BytesIO()
        schemaless_writer(value, self._value_schema, record)
        return self._key(record[self._key_field]), self._value_frame + value.getvalue()

    def _key(self, chosen: Any) -> bytes | None:
        if chosen is None:
            return None
        key = BytesIO()
        schemaless_writer(key, self._key_schema, chosen)
        return self._key_frame + key.getvalue()


def fields_of(stream: Stream) -> list[Field]:
    """The fields of a stream's values.

    Raises:
        ConfigurationError: A field's type is none that a row can give.
    """
    return [_field(stream, written) for written in stream.value_schema["fields"]]


def shown(value: Any) -> str:
    """A value as an error quotes it: short, on one line."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def _field(stream: Stream, written: Mapping[str, Any]) -> Field:
    kind, nullable = written["type"], False
    if isinstance(kind, list):
        others = [branch for branch in kind if branch != "null"]
        nullable = len(others) < len(kind)
        kind = others[0] if len(others) == 1 else kind
    convert = _converter(kind)
    if convert is None:
        raise ConfigurationError(
            f"field {written['name']} of {stream.name} has a type that rows cannot give:"
            f" {written['type']}"
        )
    required = "default" not in written
    return Field(written["name"], convert, nullable, written.get("default"), required)


def _converter(kind: Any) -> Convert | None:
    if isinstance(kind, str):
        kind = {"type": kind}
    if not isinstance(kind, dict):
        return None
    base, logical = kind["type"], kind.get("logicalType")
    if logical == "decimal" and base == "bytes":
        return lambda value: _decimal(value, kind["precision"], kind.get("scale", 0))
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return lambda value: _instant(value) // 1_000
    if logical in ("timestamp-micros", "local-timestamp-micros"):
        return _instant
    if logical == "date":
        return _days
    if logical is not None:
        return None
    if base in _INT_BITS:
        return lambda value: _whole(value, _INT_BITS[base])
    simple: dict[str, Convert] = {
        "string": _text,
        "boolean": _boolean,
        "float": _float,
        "double": _float,
    }
    return simple.get(base) if isinstance(base, str) else None


def _number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise Misfit("is not a number")
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise Misfit("is not a number")
    return Decimal(text)


def _float(value: Any) -> float:
    number = float(_number(value))
    if math.isinf(number):
        raise ValueError("is beyond a floating-point number")
    return number


def _whole(value: Any, bits: int) -> int:
    number = _number(value)
    if number != number.to_integral_value():
        raise ValueError("is not a whole number")
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"is beyond a {bits}-bit integer")
    return int(number)


def _decimal(value: Any, precision: int, scale: int) -> Decimal:
    number = _number(value)
    exact = number.normalize()
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > scale:
        raise ValueError(f"has {-exponent} decimals, the stream keeps {scale}")
    if exact.adjusted() + 1 > precision - scale:
        raise ValueError(f"is too large for decimal({precision},{scale})")
    return number.quantize(Decimal(1).scaleb(-scale))


def _instant(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise Misfit("is not a time")
    return instant_micros(value)


def _days(value: Any) -> int:
    try:
        return (date.fromisoformat(str(value).strip()) - date(1970, 1, 1)) // timedelta(
            1
        )
    except ValueError:
        raise ValueError("is not a date (write it like 2021-05-10)") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit("is not text")
    if not value.isprintable() and not _is_unicode(value):
        raise ValueError("has half a character (a lone surrogate)")
    return value


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _boolean(value: Any) -> bool:
    word = str(value).strip().lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("is neither true nor false")
    return word in _TRUE
