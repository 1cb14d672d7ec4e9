"""Payloads to columns, each record with the schema that wrote it.

Spark's ``from_avro`` neither notices bytes that are left over nor fails on a wrong schema
that happens to fit. So an Avro int is appended to every payload and a field for it to both
schemas: the record is good only if that number comes back, which takes a decoder that has
consumed exactly the payload's bytes. JSON gets the number in the same way, as a second
value behind the record's own.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

from spark_ingest import avro_text
from spark_ingest.avro import AvroSchema
from spark_ingest.readings import WRAPPED, Reading
from spark_ingest.schema import JSON_TEXT, TopicSchema
from spark_ingest.wire_format import Part

_SENTINEL = 1518256350
_TAIL = "tail__"
_SENTINEL_FIELD = {"name": _TAIL, "type": "int"}
_HEAD_FIELD = {"name": "head__", "type": "int"}
_BROKEN = "broken__"


def decoded(part: Part, schema: TopicSchema) -> Column:
    """The struct that a value or key holds: for :func:`is_good`, :func:`fields`, :func:`whole`.

    Args:
        part: ``value`` or ``key``: reads ``_kafka_<part>``, and ``_kafka_headers`` where the
            framing puts its ids there.
        schema: The topic's schemas, usable; records of other ids come out null. Where it has
            columns of JSON text, these are there already, as ``_<part>_texts``.
    """
    if schema.framing.format == "json":
        return _from_json(part, schema)
    if schema.framing.format != "avro":
        kind = "string" if schema.framing.format == "string" else "binary"
        return F.struct(F.col(f"_kafka_{part}").cast(kind).alias(WRAPPED))
    column = F.lit(None)
    for reading in schema.readings:
        value = from_avro(
            F.concat(schema.framing.payload(part), F.lit(_zigzag(_SENTINEL))),
            json.dumps(_with_fields(reading.writer, [], [_SENTINEL_FIELD])),
            {
                "avroSchema": json.dumps(
                    _with_fields(reading.reader, [], [_SENTINEL_FIELD])
                ),
                "mode": "PERMISSIVE",
                "enableStableIdentifiersForUnionType": "true",
                "stableIdentifierPrefixForUnionType": "",
            },
        )
        if reading.cast:
            value = value.cast(_avro_struct(schema))
        column = F.when(_is_of(part, schema, reading), value).otherwise(column)
    if schema.texts:
        # Java's decoder would go as deep as the bytes say, to the end of its stack.
        column = F.when(F.col(f"_{part}_texts").isNotNull(), column)
    return column


def texts(part: Part, schema: TopicSchema) -> Column | None:
    """The columns of JSON text that :func:`decoded` leaves out; None where there are none.

    Returns:
        A struct of them; null where the payload cannot be decoded.
    """
    if not schema.texts:
        return None
    payload = schema.framing.payload(part)
    number = F.lit(None).cast("int")
    for at, reading in enumerate(schema.readings):
        number = F.when(_is_of(part, schema, reading), F.lit(at)).otherwise(number)
    read = avro_text.udf([r.writer for r in schema.readings], schema.texts)
    found: Column = read(number, payload)
    return found


def is_good(part: Part, schema: TopicSchema) -> Column:
    """Whether what :func:`decoded` made of ``_kafka_<part>``, as ``_<part>``, is all of it."""
    struct = F.col(f"_{part}")
    if schema.framing.format == "string":
        return F.is_valid_utf8(F.col(f"_kafka_{part}").cast("string"))
    if schema.framing.format == "bytes":
        return F.lit(True)
    if schema.framing.format == "json":
        items = struct[WRAPPED]
        came_back = (F.size(items) == 2) & (F.get(items, F.lit(1))[_TAIL] == _SENTINEL)
        is_text = F.is_valid_utf8(F.col(f"_kafka_{part}").cast("string"))
        is_object = F.get(items, F.lit(0)).isNotNull()
        sound = came_back & struct[_BROKEN].isNull() & is_object & is_text
    else:
        sound = struct[_TAIL] == F.lit(_SENTINEL)
        if schema.texts:
            sound = sound & F.col(f"_{part}_texts").isNotNull()
    return F.coalesce(sound, F.lit(False))


def begins_with_payload(part: Part, schema: TopicSchema) -> Column:
    """Whether bytes that :func:`decoded` refused begin with a whole payload all the same.

    So it tells bytes that are left over from bytes that do not decode: the number goes
    before the payload, and comes back wherever the payload ends. Known of Avro alone, and
    not where a type contains itself.

    Args:
        part: Of ``_kafka_value`` or ``_kafka_key``.
        schema: The topic's schemas, usable.
    """
    column = F.lit(None).cast("int")
    # What contains itself is not decoded unless it is good: see decoded().
    for reading in () if schema.texts else schema.readings:
        value = from_avro(
            F.concat(F.lit(_zigzag(_SENTINEL)), schema.framing.payload(part)),
            json.dumps(_with_fields(reading.writer, [_HEAD_FIELD], [])),
            {
                "avroSchema": json.dumps(
                    _with_fields(reading.reader, [_HEAD_FIELD], [])
                ),
                "mode": "PERMISSIVE",
                "enableStableIdentifiersForUnionType": "true",
                "stableIdentifierPrefixForUnionType": "",
            },
        )
        found = value["head__"]
        column = F.when(_is_of(part, schema, reading), found).otherwise(column)
    return F.coalesce(column == F.lit(_SENTINEL), F.lit(False))


def fields(part: Part, schema: TopicSchema) -> dict[str, Column]:
    """The fields of what :func:`decoded` made, as ``_<part>``, by name, in order."""
    struct = F.col(f"_{part}")
    if schema.framing.format == "json":
        struct = F.get(struct[WRAPPED], F.lit(0))
    elif schema.wrapped and schema.is_record:
        struct = struct[WRAPPED]
    found = {}
    for name in schema.columns.names:
        found[name] = struct[name]
        if name in schema.texts:
            found[name] = F.col(f"_{part}_texts")[name]
        elif name == JSON_TEXT and schema.framing.format == "json":
            found[name] = F.col(f"_kafka_{part}").cast("string")
    return found


def whole(part: Part, schema: TopicSchema) -> Column:
    """What :func:`decoded` made, as one value; null where ``_kafka_<part>`` is null."""
    parts = fields(part, schema)
    if not schema.is_record:
        return parts[WRAPPED]
    struct = F.col(f"_{part}")
    present = struct[WRAPPED] if schema.wrapped else struct
    named = [column.alias(name) for name, column in parts.items()]
    return F.when(present.isNotNull(), F.struct(*named))


def _is_of(part: Part, schema: TopicSchema, reading: Reading) -> Column:
    first, *others = reading.ids
    found = schema.framing.has_schema(part, first)
    for number in others:
        found = found | schema.framing.has_schema(part, number)
    return found


def _from_json(part: Part, schema: TopicSchema) -> Column:
    named = [field for field in schema.columns.fields if field.name != JSON_TEXT]
    item = StructType([*named, StructField(_TAIL, IntegerType())])
    shape = StructType(
        [StructField(WRAPPED, ArrayType(item)), StructField(_BROKEN, StringType())]
    )
    text = F.concat(
        F.lit(f'{{"{WRAPPED}":['),
        F.col(f"_kafka_{part}").cast("string"),
        F.lit(f',{{"{_TAIL}":{_SENTINEL}}}]}}'),
    )
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _BROKEN,
        "allowSingleQuotes": "false",
    }
    return F.from_json(text, shape, options)


def _avro_struct(schema: TopicSchema) -> StructType:
    """The type that ``from_avro`` makes of a topic's readings."""
    kept = [field for field in schema.columns.fields if field.name not in schema.texts]
    if schema.wrapped and schema.is_record:
        kept = [StructField(WRAPPED, StructType(kept))]
    return StructType([*kept, StructField(_TAIL, IntegerType())])


def _with_fields(
    record: AvroSchema, before: list[dict[str, Any]], behind: list[dict[str, Any]]
) -> dict[str, Any]:
    return {**record, "fields": [*before, *record["fields"], *behind]}


def _zigzag(number: int) -> bytes:
    """A non-negative Avro int, as the specification encodes it."""
    rest, encoded = number << 1, bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)
