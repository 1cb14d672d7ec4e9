"""The Avro schemas of a publication's keys and values, derived from its mart's contract."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from spark_ingest.publish.publications import MartColumn, Publication

_PLAIN: dict[type[DataType], Any] = {
    BooleanType: "boolean",
    ByteType: "int",
    ShortType: "int",
    IntegerType: "int",
    LongType: "long",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "bytes",
    DateType: {"type": "int", "logicalType": "date"},
    TimestampType: {"type": "long", "logicalType": "timestamp-micros"},
    TimestampNTZType: {"type": "long", "logicalType": "local-timestamp-micros"},
}
CHANGE_FIELDS = (
    {
        "name": "_op",
        "type": "string",
        "doc": "r: there when the topic began; c: new; u: changed; d: gone, with its last values",
    },
    {
        "name": "_committed_at",
        "type": {"type": "long", "logicalType": "timestamp-millis"},
        "doc": "When the mart was committed in which the row is so",
    },
)
"""The fields before those of the row with envelope ``changes``."""


@dataclass(frozen=True)
class RecordSchemas:
    """Avro schemas of a publication.

    Attributes:
        key: Record of the key columns.
        row: Record of all columns.
        value: Record of the value: ``row``, with envelope ``changes`` after ``CHANGE_FIELDS``.
    """

    key: dict[str, Any]
    # Derived from the value, except for its name.
    row: dict[str, Any] = field(compare=False)
    value: dict[str, Any]


def read_schemas(key: dict[str, Any], value: dict[str, Any]) -> RecordSchemas:
    """The schemas of a publication from the registered ones of key and value."""
    names = {each["name"] for each in CHANGE_FIELDS}
    rows = [each for each in value["fields"] if each["name"] not in names]
    return RecordSchemas(key, {**value, "fields": rows}, value)


def record_schemas(publication: Publication, mart: StructType) -> RecordSchemas:
    """The schemas of a publication. ``mart`` has the current columns of its table.

    Raises:
        ConfigurationError: The table lacks a column of the contract, or a column has a type
            without an Avro counterpart.
    """
    types = {column.name: column.dataType for column in mart.fields}
    fields = {c.name: _field(publication, c, types) for c in publication.columns}
    schema, _, name = publication.mart.rpartition(".")

    def record(suffix: str, of: list[dict[str, Any]]) -> dict[str, Any]:
        head = {"type": "record", "name": f"{name}{suffix}", "namespace": schema}
        return {**head, "doc": publication.description, "fields": of}

    rows = list(fields.values())
    row = record("", rows)
    value = row
    if publication.meta.envelope == "changes":
        value = record("_change", [*CHANGE_FIELDS, *rows])
    return RecordSchemas(record("_key", [fields[column] for column in publication.key]), row, value)


def _field(
    publication: Publication, column: MartColumn, types: dict[str, DataType]
) -> dict[str, Any]:
    kind = types.get(column.name)
    if kind is None:
        raise publication.error(
            "topic",
            f"{publication.mart} has no column {column.name}: run "
            f"`dbt build --select {publication.mart.rpartition('.')[2]}`",
        )
    avro = _PLAIN.get(type(kind))
    if isinstance(kind, DecimalType):
        avro = {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if avro is None:
        raise publication.error(
            "topic",
            f"{column.name} of {publication.mart} is {kind.simpleString()}, which is not "
            "supported: publish a mart with scalar columns only",
        )
    field = {"name": column.name, "type": avro, "doc": column.description}
    if not column.is_required:
        field |= {"type": ["null", avro], "default": None}
    return field
