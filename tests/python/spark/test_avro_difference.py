"""Random records, many of them damaged: the engine and the specification say the same.

Fails when a value lands that its record does not hold, or a good record is quarantined.
"""

from __future__ import annotations

import decimal
import io
import json
import os
import random
import re
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from spark_ingest.avro.evolution import combine
from spark_ingest.avro.framing import header
from spark_ingest.avro.schema import WriterSchema
from spark_ingest.records.avro_check import schema_problem
from tests.python.spark.avro_random import Schemas, Writer, damaged
from tests.python.spark.avro_reference import Branch, Damaged, Reader, misfit
from tests.python.spark.test_ingest_decode import judge, kafka

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(10**6)))
Sent = tuple[int, bytes, bool]
"""The place of the version that wrote it, the framed bytes, whether they are left sound."""
Landed = tuple[str | None, str | None, dict[str, Any]]
"""Error class and message of one that was quarantined, the columns of one that was not."""


def test_what_lands_is_what_the_specification_reads(spark: SparkSession) -> None:
    agree(spark, SEED, topics=5, records=1000)


@pytest.mark.long
def test_what_lands_is_what_the_specification_reads_of_many(
    spark: SparkSession,
) -> None:
    agree(spark, SEED, topics=80, records=1250)


def agree(spark: SparkSession, seed: int, topics: int, records: int) -> None:
    """Compare this many topics' records; ``SEED`` repeats a run."""
    print(f"SEED={seed}")
    kinds = {"good": 0, "undecodable": 0, "left_over_bytes": 0}
    for number in range(topics):
        chance = random.Random(f"{seed} {number}")
        versions = Schemas(chance).versions()
        values = sent(chance, versions, records)
        landed, types = engine(spark, versions, values)
        for (version, value, sound), (error_class, message, row) in zip(
            values, landed, strict=True
        ):
            told, field, wanted = reference(versions[version], value, types)
            kinds[told] += 1
            schema = versions[version]
            case = f"SEED={seed} topic {number}: {value.hex()} of {json.dumps(schema)}"
            assert (error_class or "good") == told, f"{message}; {case}"
            if told == "undecodable":
                reason = f"value schema {version + 1}: {field}"
                assert re.match(rf"{reason}\b", message or ""), f"{message}; {case}"
            if told == "good":
                assert row == wanted, case
            if sound:
                assert told == "good", case
                fast = fastavro.schemaless_reader(
                    io.BytesIO(value[5:]), bare(schema), None
                )
                own = untagged(Reader(value[5:], schema).value())
                assert repr(own) == repr(fast), case
    # Of each kind there must be some, or nothing was tried.
    assert min(kinds.values()) > topics * records // 50, kinds


def sent(chance: random.Random, versions: list[Any], count: int) -> list[Sent]:
    """Records of all versions in turn: a third sound, the others damaged in either way."""
    sound, harmful = Writer(chance, 0), Writer(chance, 0.03)
    found = []
    for number in range(count):
        at = number % len(versions)
        is_sound = number % 3 == 0
        if is_sound:
            payload = sound.record(versions[at])
        elif number % 3 == 1:
            payload = harmful.record(versions[at])
        else:
            one, other = (sound.record(versions[at]) for _ in range(2))
            payload = damaged(chance, one, other)
        found.append((at, header(at + 1) + payload, is_sound))
    return found


def engine(
    spark: SparkSession, versions: list[Any], values: list[Sent]
) -> tuple[list[Landed], StructType]:
    """What the engine makes of the records, and its columns."""
    writers = [WriterSchema(at, schema) for at, schema in enumerate(versions, 1)]
    schema = combine(writers, problem=schema_problem)
    assert not schema.misfits
    records = kafka(spark, *(value for _, value, _ in values))
    judged = judge(records, "id", schema, None)
    columns = [column.alias(name) for name, column in judged.columns.items()]
    table = (
        judged.records.orderBy("_kafka_offset")
        .select("_verdict.error_class", "_verdict.error_message", F.struct(*columns))
        .toArrow()
    )
    classes, messages, rows = (
        list(plain(chunks.combine_chunks())) for chunks in table.columns
    )
    return list(zip(classes, messages, rows, strict=True)), judged.schema()


def reference(
    schema: Any, value: bytes, columns: StructType
) -> tuple[str, str | None, dict[str, Any] | None]:
    """What the specification says of a record.

    Returns:
        Its class; the first field that is wrong; if it is good, its columns.
    """
    reader = Reader(value[5:], schema)
    wrong = None
    try:
        reader.value()
    except Damaged:
        wrong = reader.field
    for each in schema["fields"]:
        name = each["name"]
        if name in reader.read and misfit(each["type"], reader.read[name]):
            wrong = name
            break
    if wrong:
        return "undecodable", wrong, None
    if reader.place < len(value) - 5:
        return "left_over_bytes", None, None
    return "good", None, held(schema, reader.read, columns)


def held(schema: Any, value: Any, kind: DataType) -> Any:
    """A value as a column of a type holds it; times as numbers, floats as text."""
    if isinstance(value, Branch):
        branch = schema[value.at]
        if branch == "null":
            return None
        if sum(each != "null" for each in schema) == 1:
            return held(branch, value.value, kind)
        assert isinstance(kind, StructType)
        name = member(branch)
        return {
            field.name: held(branch, value.value, field.dataType)
            if field.name == name
            else None
            for field in kind
        }
    if isinstance(kind, StructType):
        have = {each["name"]: each["type"] for each in schema["fields"]}
        return {
            field.name: held(have[field.name], value[field.name], field.dataType)
            if field.name in have
            else None
            for field in kind
        }
    if isinstance(kind, ArrayType):
        return [held(schema["items"], item, kind.elementType) for item in value]
    if isinstance(kind, MapType):
        return {
            key: held(schema["values"], item, kind.valueType)
            for key, item in value.items()
        }
    logical = schema.get("logicalType", "") if isinstance(schema, dict) else ""
    if logical == "decimal":
        number = decimal.Decimal(int.from_bytes(value, "big", signed=True))
        return number.scaleb(-schema["scale"], decimal.Context(prec=38))
    if logical.endswith("-millis"):
        return value * 1000
    return repr(value) if isinstance(value, float) else value


def member(branch: Any) -> str:
    """The member of a struct that a union's branch becomes."""
    if isinstance(branch, str):
        return branch
    name: str = branch.get("name", branch["type"])
    return name.lower()


def plain(column: pa.Array) -> Iterator[Any]:
    """Values of Arrow's as plain ones: Python has no room for some dates."""
    kind = column.type
    valid = column.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        parts = [list(plain(part)) for part in column.flatten()]
        for at, is_there in enumerate(valid):
            yield (
                {n: p[at] for n, p in zip(names, parts, strict=True)}
                if is_there
                else None
            )
    elif pa.types.is_map(kind):
        pairs = list(zip(plain(column.keys), plain(column.items), strict=True))
        ends = column.offsets.to_pylist()
        for at, is_there in enumerate(valid):
            yield dict(pairs[ends[at] : ends[at + 1]]) if is_there else None
    elif pa.types.is_list(kind):
        items = plain(column.flatten())
        for size in column.value_lengths().to_pylist():
            yield None if size is None else [next(items) for _ in range(size)]
    else:
        if pa.types.is_date(kind):
            column = column.cast(pa.int32())
        elif pa.types.is_timestamp(kind):
            column = column.cast(pa.int64())
        for value in column.to_pylist():
            yield repr(value) if isinstance(value, float) else value


def bare(schema: Any) -> Any:
    """A schema without logical types."""
    if isinstance(schema, list):
        return [bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inside = ("type", "items", "values", "fields")
    return {
        key: bare(part) if key in inside else part
        for key, part in schema.items()
        if key != "logicalType"
    }


def untagged(value: Any) -> Any:
    """A value without the places of unions' branches."""
    if isinstance(value, Branch):
        return untagged(value.value)
    if isinstance(value, dict):
        return {key: untagged(item) for key, item in value.items()}
    return [untagged(item) for item in value] if isinstance(value, list) else value
