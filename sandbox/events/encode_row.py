"""Encode rows of a file as Avro records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from io import BytesIO
from typing import Any

from fastavro import parse_schema, schemaless_writer

from sandbox.events import fields
from sandbox.events.fields import Convert, Field
from sandbox.streams import Stream
from sandbox.streams.avro_bytes import frame
from spark_ingest.errors import ConfigurationError

_INT_BITS = {"int": 32, "long": 64}
_EPOCH = date(1970, 1, 1)


class RowEncoder:
    """Encodes rows as Avro keys and values of one stream, in Confluent framing.

    Timestamps are truncated to the precision of the schema, milliseconds or microseconds, as
    Kafka and Java do: rounding up could move an event into the future.
    """

    def __init__(self, stream: Stream, key_schema_id: int, value_schema_id: int) -> None:
        self.fields = fields_of(stream)
        self._key_field = stream.key_field
        self._key_frame, self._value_frame = (frame(key_schema_id), frame(value_schema_id))
        self._key_schema = parse_schema(stream.key_schema)
        self._value_schema = parse_schema(stream.value_schema)

    def encode(self, values: Mapping[str, Any]) -> tuple[bytes | None, bytes]:
        """The framed key and value of one row; the key is None if its field is null.

        ``values`` are by field name; unknown names are ignored.

        Raises:
            InvalidValue: A value is missing or invalid.
        """
        record = {field.name: field.converted(values) for field in self.fields}
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
        ConfigurationError: A field has a type that rows do not support.
    """
    return [_field(stream, written) for written in stream.value_schema["fields"]]


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
        return lambda value: fields.exact(value, kind["precision"], kind.get("scale", 0))
    if logical in ("timestamp-millis", "local-timestamp-millis"):
        return lambda value: fields.instant(value) // 1_000
    if logical in ("timestamp-micros", "local-timestamp-micros"):
        return fields.instant
    if logical == "date":
        return lambda value: (fields.day(value) - _EPOCH).days
    if logical is not None:
        return None
    if base in _INT_BITS:
        return lambda value: fields.whole(value, _INT_BITS[base])
    simple: dict[str, Convert] = {
        "string": fields.text,
        "boolean": fields.boolean,
        "float": fields.floating,
        "double": fields.floating,
    }
    return simple.get(base) if isinstance(base, str) else None
