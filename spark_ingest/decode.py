"""Avro payloads to columns, each record with the schema that wrote it.

Spark's ``from_avro`` neither notices bytes that are left over nor fails on a wrong schema
that happens to fit. So an Avro int is appended to every payload and a field for it to both
schemas: the record is good only if that number comes back, which takes a decoder that has
consumed exactly the payload's bytes.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from spark_ingest import wire_format
from spark_ingest.registry import AvroSchema
from spark_ingest.schema import TopicSchema

_SENTINEL = 1518256350
_SENTINEL_FIELD = {"name": "tail__", "type": "int"}
_HEAD_FIELD = {"name": "head__", "type": "int"}
_WRAPPED = "value"


def decoded(framed: str, schema: TopicSchema) -> Column:
    """The struct that a framed binary column holds.

    Args:
        framed: Name of the column.
        schema: The topic's schemas, with a reader; records of other ids come out null.

    Returns:
        A struct of the reader schema's fields (one field ``value`` where the schema is not a
        record) and the sentinel; null fields where the bytes cannot be decoded.
    """
    column = F.lit(None)
    for number, writer in schema.writers.items():
        value = from_avro(
            F.concat(wire_format.payload(framed), F.lit(_zigzag(_SENTINEL))),
            json.dumps(_with_sentinel(writer, schema.reader)),
            {
                "avroSchema": json.dumps(_with_sentinel(schema.reader, schema.reader)),
                "mode": "PERMISSIVE",
            },
        )
        column = F.when(wire_format.has_schema(framed, number), value).otherwise(column)
    return column


def is_good(struct: str) -> Column:
    """Whether a column made by :func:`decoded` came from exactly its payload's bytes."""
    return F.coalesce(F.col(struct)["tail__"] == F.lit(_SENTINEL), F.lit(False))


def begins_with_payload(framed: str, schema: TopicSchema) -> Column:
    """Whether bytes that :func:`decoded` refused begin with a whole payload all the same.

    So it tells bytes that are left over from bytes that do not decode: the number goes
    before the payload, and comes back wherever the payload ends.

    Args:
        framed: Name of the column.
        schema: The topic's schemas, with a reader.
    """
    column = F.lit(None).cast("int")
    for number, writer in schema.writers.items():
        value = from_avro(
            F.concat(F.lit(_zigzag(_SENTINEL)), wire_format.payload(framed)),
            json.dumps(_with_head(writer, schema.reader)),
            {
                "avroSchema": json.dumps(_with_head(schema.reader, schema.reader)),
                "mode": "PERMISSIVE",
            },
        )
        found = value["head__"]
        column = F.when(wire_format.has_schema(framed, number), found).otherwise(column)
    return F.coalesce(column == F.lit(_SENTINEL), F.lit(False))


def fields(struct: str, schema: TopicSchema) -> dict[str, Column]:
    """The fields of a column made by :func:`decoded`, by name, in order."""
    return {name: F.col(struct)[name] for name in _field_names(schema.reader)}


def whole(struct: str, schema: TopicSchema) -> Column:
    """What a column made by :func:`decoded` holds, as one value; null where it holds none."""
    if not _is_record(schema.reader):
        return F.col(struct)[_WRAPPED]
    parts = (column.alias(name) for name, column in fields(struct, schema).items())
    return F.when(F.col(struct).isNotNull(), F.struct(*parts))


def _field_names(reader: AvroSchema) -> list[str]:
    if _is_record(reader):
        return [field["name"] for field in reader["fields"]]
    return [_WRAPPED]


def _is_record(schema: AvroSchema) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "record"


def _with_sentinel(schema: AvroSchema, reader: AvroSchema) -> dict[str, Any]:
    record = _as_record(schema, reader)
    return {**record, "fields": [*record["fields"], _SENTINEL_FIELD]}


def _with_head(schema: AvroSchema, reader: AvroSchema) -> dict[str, Any]:
    record = _as_record(schema, reader)
    return {**record, "fields": [_HEAD_FIELD, *record["fields"]]}


def _as_record(schema: AvroSchema, reader: AvroSchema) -> dict[str, Any]:
    """The schema itself, or a record of one field where a topic's values are no records."""
    if _is_record(reader):
        return dict(schema)
    fields = [{"name": _WRAPPED, "type": schema}]
    return {"type": "record", "name": "Wrapped", "fields": fields}


def _zigzag(number: int) -> bytes:
    """A non-negative Avro int, as the specification encodes it."""
    rest, encoded = number << 1, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
