"""Decodes payloads to columns, each record with its writer schema.

Spark's ``from_avro`` ignores trailing bytes and accepts values out of range, so Avro bytes are
checked first (:mod:`spark_ingest.records.avro_check`); ``from_json`` changes values that do not
fit a column, so JSON is checked as well (``JsonCheck.java``). ``from_avro`` returns a struct of
nulls for bytes that it cannot decode. So the reader schema has an additional int field, and a
record is valid only if the field has the expected value: the first byte of the framing, or the
default. JSON gets it as a second value after the record.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from spark_ingest.avro import json_text
from spark_ingest.avro.evolution import JSON_TEXT, TopicSchema
from spark_ingest.avro.framing import Part
from spark_ingest.avro.reader_schemas import WRAPPED, Reading
from spark_ingest.records import avro_check, java_checks

_SENTINEL = 1518256350
_BROKEN = "broken__"


def decoded(part: Part, schema: TopicSchema) -> Column:
    """The decoded struct of a value or key, for :func:`is_good`, :func:`fields`, :func:`whole`.

    Args:
        part: ``value`` or ``key``: reads ``_kafka_<part>``, and ``_kafka_headers`` if the framing
            has its ids there.
        schema: The topic's schemas, usable; records with other ids decode to null. For Avro and
            JSON the column ``_<part>_problem`` must exist.
    """
    if schema.framing.format == "json":
        return _from_json(part, schema)
    if schema.framing.format != "avro":
        kind = "string" if schema.framing.format == "string" else "binary"
        return F.struct(F.col(f"_kafka_{part}").cast(kind).alias(WRAPPED))
    column = F.lit(None)
    number = {"name": _number(schema), "type": "int", "default": _SENTINEL}
    # Decode the framing as fields: a substring would copy every record.
    framing = _framing_fields(schema) if schema.framing.begin else []
    for reading in schema.readings:
        reader = {**reading.reader, "fields": [*reading.reader["fields"], number]}
        value = from_avro(
            F.col(schema.framing.column(part)),
            json.dumps({**reading.writer, "fields": [*framing, *reading.writer["fields"]]}),
            {
                "avroSchema": json.dumps(reader),
                "mode": "PERMISSIVE",
                "enableStableIdentifiersForUnionType": "true",
                "stableIdentifierPrefixForUnionType": "",
            },
        )
        if reading.cast:
            value = value.cast(_avro_struct(schema))
        column = F.when(_is_of(part, schema, reading), value).otherwise(column)
    if not schema.readings:
        return column
    # Do not decode invalid bytes: lengths and depth in them are not limited.
    return F.when(F.col(f"_{part}_problem").isNull(), column)


def problem(part: Part, schema: TopicSchema, most_bytes: int) -> Column | None:
    """Why ``_kafka_<part>`` is invalid, or does not fit the columns; None without a check.

    The arguments are those of :func:`decoded`; payloads longer than ``most_bytes`` are invalid
    and not checked further.

    Returns:
        As :func:`spark_ingest.records.avro_check.check`; null also for an unknown schema.
    """
    if schema.framing.format == "json":
        shape = _json_columns(schema).json()
        column = java_checks.checked(["JsonCheck"], f"_kafka_{part}", shape)
    elif not schema.readings:
        return None
    else:
        column = _avro_problem(part, schema)
    is_long = F.length(f"_kafka_{part}") > most_bytes
    return F.when(is_long, F.lit("too long")).otherwise(column)


def _avro_problem(part: Part, schema: TopicSchema) -> Column:
    column = F.lit(None).cast("string")
    for reading in schema.readings:
        writer = reading.writer
        if schema.wrapped:
            # The wrapper does not change the bytes, only the fields' names in messages.
            writer = writer["fields"][0]["type"]
        found = avro_check.check(schema.framing.column(part), schema.framing.begin, writer)
        column = F.when(_is_of(part, schema, reading), found).otherwise(column)
    return column


def texts(part: Part, schema: TopicSchema) -> Column | None:
    """The columns of JSON text, which :func:`decoded` omits; None if there are none.

    Returns:
        A struct of them; null if the payload cannot be decoded, or ``_<part>_problem`` is not
        null: the input is nulled, as Spark evaluates Python functions for every record.
    """
    if not schema.texts:
        return None
    is_sound = F.col(f"_{part}_problem").isNull()
    payload = F.when(is_sound, schema.framing.payload(part))
    number = F.lit(None).cast("int")
    for at, reading in enumerate(schema.readings):
        number = F.when(_is_of(part, schema, reading), F.lit(at)).otherwise(number)
    writers = [reading.writer for reading in schema.readings]
    if schema.wrapped and schema.is_record:
        # The columns are the fields of the wrapped record.
        writers = [writer["fields"][0]["type"] for writer in writers]
    read = json_text.udf(writers, schema.texts)
    found: Column = read(number, payload)
    return found


def is_good(part: Part, schema: TopicSchema) -> Column:
    """Whether ``_<part>``, the result of :func:`decoded`, is the complete ``_kafka_<part>``."""
    struct = F.col(f"_{part}")
    if schema.framing.format == "string":
        return F.is_valid_utf8(F.col(f"_kafka_{part}").cast("string"))
    if schema.framing.format == "bytes":
        return F.lit(True)
    if schema.framing.format == "json":
        items = struct[WRAPPED]
        number = F.get(items, F.lit(1))[_number(schema)]
        came_back = (F.size(items) == 2) & (number == _SENTINEL)
        is_text = F.is_valid_utf8(F.col(f"_kafka_{part}").cast("string"))
        is_object = F.get(items, F.lit(0)).isNotNull()
        sound = came_back & struct[_BROKEN].isNull() & is_object & is_text
    else:
        # Reading the first byte is cheaper than Avro's default, which is decoded per record.
        first = schema.framing.marker[0]
        number = F.lit((first >> 1) ^ -(first & 1) if schema.framing.begin else _SENTINEL)
        sound = struct[_number(schema)] == number
        if schema.texts:
            sound = sound & F.col(f"_{part}_texts").isNotNull()
    return F.coalesce(sound, F.lit(False))


def fields(part: Part, schema: TopicSchema) -> dict[str, Column]:
    """The fields of ``_<part>``, the result of :func:`decoded`, by name, in order."""
    struct = F.col(f"_{part}")
    if schema.member is not None:
        bare = struct[WRAPPED]
        return {WRAPPED: F.when(bare.isNotNull(), F.struct(bare.alias(schema.member)))}
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
    """The result of :func:`decoded` as one value; null if ``_kafka_<part>`` is null."""
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
    number = _number(schema)
    item = StructType([*_json_columns(schema), StructField(number, IntegerType())])
    shape = StructType([StructField(WRAPPED, ArrayType(item)), StructField(_BROKEN, StringType())])
    text = F.concat(
        F.lit(f'{{"{WRAPPED}":['),
        F.col(f"_kafka_{part}").cast("string"),
        F.lit(f',{{"{number}":{_SENTINEL}}}]}}'),
    )
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _BROKEN,
        "allowSingleQuotes": "false",
    }
    # Do not decode invalid JSON: rounding a decimal takes time proportional to its exponent.
    return F.when(F.col(f"_{part}_problem").isNull(), F.from_json(text, shape, options))


def _json_columns(schema: TopicSchema) -> StructType:
    """The columns of a JSON object's members."""
    return StructType([f for f in schema.columns.fields if f.name != JSON_TEXT])


def _avro_struct(schema: TopicSchema) -> StructType:
    """The result type of ``from_avro`` for a topic."""
    kept = [field for field in schema.columns.fields if field.name not in schema.texts]
    if schema.wrapped and schema.is_record:
        kept = [StructField(WRAPPED, StructType(kept))]
    value = schema.whole
    if schema.member is not None and isinstance(value, StructType):
        kept = [StructField(WRAPPED, value[schema.member].dataType)]
    return StructType([*kept, StructField(_number(schema), IntegerType())])


def _framing_fields(schema: TopicSchema) -> list[dict[str, Any]]:
    """The framing as fields of the writer schema: the first byte, as an int, and the others."""
    kind = {
        "type": "fixed",
        "name": "it",
        "namespace": "framing__",
        "size": schema.framing.begin - 1,
    }
    return [
        {"name": _number(schema), "type": "int"},
        {"name": _free_name(schema, "framing__"), "type": kind},
    ]


def _number(schema: TopicSchema) -> str:
    """The name of the additional int field."""
    return _free_name(schema, "number__")


def _free_name(schema: TopicSchema, name: str) -> str:
    """A name that no other field has."""
    taken = {each.lower() for each in schema.columns.names}
    for reading in schema.readings:
        taken |= {field["name"].lower() for field in reading.writer["fields"]}
    while name in taken:
        name += "_"
    return name
